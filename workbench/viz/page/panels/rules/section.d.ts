// The types of this panel's section. scripts/page_types.py writes this file from panel.py; change
// them in that file.

/**
 * A graph in words, and what it becomes.
 */
export interface RuleExample {
  before: string;
  after: string;
}

/**
 * A rule of the package, a registered one, or a step of a pass, which has no text of its
 * own: its name, its text and its reason; its table, its file and its line; the passes that
 * use it, and examples.
 */
export interface ListedRule {
  name: string;
  text: string;
  doc: string;
  set: string;
  file: string;
  line: number;
  passes: Array<string>;
  examples: Array<RuleExample>;
}
