// Variants that need care: those with the default opts of another device, and those that a new plan
// has or lacks.

/** @import { DeviceRow, PageRecord, VariantRow } from "../record.d.ts" */
/** @import { View } from "../types.d.ts" */

/** Whose default opts a device has: its own, or "", those that the processors share.
 * @param {DeviceRow | undefined} device */
const ownerOf = (device) => device && (device.groups || device.elsewhere) ? device.name : "";

/** Whether a variant has the default opts of another device than that of the record, or came from
 * such a one.
 * @param {PageRecord} record
 * @param {VariantRow | null} variant */
export function isOfOtherDevice({ devices, device }, variant) {
  if (!variant?.default_of || variant.default_of === device) return false;
  const owner = (/** @type {string} */ name) => ownerOf(devices.find((row) => row.name === name));
  return owner(variant.default_of) !== owner(device);
}

// The reader's selection carried to the next plan: the kernel and the variant, where they exist.

/** A view of a record, in the record of the plan that came after it; unchanged where that is of the
 * same plan.
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

/** What to say of a variant that the next plan does not have: "" where there is nothing to say.
 * @param {PageRecord} was
 * @param {PageRecord} now
 * @param {number | null} variant */
export function lostVariant(was, now, variant) {
  const row = was.variants[variant ?? -1];
  const isLost = row?.parent != null && now.plan.compared?.variants_now?.[variant ?? -1] === null;
  return isLost ? `${row.name.slice(0, 40)} does not apply in this plan: plain is shown` : "";
}
