// The types of the arguments of `h` and `svg` in elements.js.

/** A child of an element; empty values are left out. */
export type Part = Node | string | false | null | undefined;
export type Child = Part | Part[];

/** Any function of an event, whose kind is the name of the attribute. */
type Handler = { of(event: Event): unknown }["of"];
type On<E, V extends Event> = { of(event: V & { target: E; currentTarget: E }): unknown }["of"];

/** Attributes by name; a name that begins with "on" is that of an event. */
export interface Attributes<E = Element> {
  [name: string]: string | number | boolean | null | undefined | Handler;
  onclick?: On<E, MouseEvent>;
  oninput?: On<E, Event>;
  onchange?: On<E, Event>;
  onmousemove?: On<E, MouseEvent>;
  onblur?: On<E, FocusEvent>;
  onkeydown?: On<E, KeyboardEvent>;
}
