// Variants that need care: those with the default opts of another device, and those that a new plan
// has or lacks.

/** @import { DeviceRow, PageRecord, VariantRow } from "../record.d.ts" */
/** @import { View } from "../types.d.ts" */

/** The owner of a device's default opts: the device, or "" for those that processors share.
 * @param {DeviceRow | undefined} device */
const ownerOf = (device) => device && (device.groups || device.elsewhere) ? device.name : "";

/** Whether a variant has the default opts of another device than the record's, or is derived from
 * such a one.
 * @param {PageRecord} record
 * @param {VariantRow | null} variant */
export const isOfOtherDevice = (record, variant) => isOther(record, variant?.default_of);

/** Whether a device is another than the record's: all processors of this machine are one.
 * @param {PageRecord} record
 * @param {string | undefined} name */
export function isOther({ devices, device }, name) {
  if (!name || name === device) return false;
  const owner = (/** @type {string} */ of) => ownerOf(devices.find((row) => row.name === of));
  return owner(name) !== owner(device);
}

/** What is wrong with a variant: its error, or its wrong answer; "" for nothing.
 * @param {Pick<VariantRow, "error" | "check">} variant */
export const faultText = ({ error, check }) =>
  error?.what ?? (check?.ok === false ? check.text : "");

// The reader's selection carried to the next plan: the kernel and the variant, where they exist.

/** A view in the record of the next plan; unchanged in a record of the same plan.
 * @param {PageRecord} was
 * @param {PageRecord} now
 * @param {View} view
 * @returns {View} */
export function viewInPlan(was, now, view) {
  const { number, kernels_now = [], variants_now = [] } = now.plan.compared ?? {};
  if (number === undefined || number === was.plan.compared?.number) return view;
  const variantNow = (/** @type {number | null} */ place) => variants_now[place ?? -1] ?? null;
  return {
    ...view,
    kernel: kernels_now[view.kernel] ?? view.kernel,
    variant: variantNow(view.variant),
    columns: view.columns.map((column) => ({ ...column, variant: variantNow(column.variant) })),
  };
}

/** The notice about a variant that the next plan lacks; "" if it has the variant.
 * @param {PageRecord} was
 * @param {PageRecord} now
 * @param {number | null} variant */
export function lostVariant(was, now, variant) {
  const row = was.variants[variant ?? -1];
  const isLost = row?.parent != null && now.plan.compared?.variants_now?.[variant ?? -1] === null;
  return isLost ? `${row.name.slice(0, 40)} does not apply in this plan: plain is shown` : "";
}
