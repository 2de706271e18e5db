// Variants with the default opts of another device: they compare nothing on this device, and may
// not be legal.

/** @import { DeviceRow, PageRecord, VariantRow } from "../record.d.ts" */

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
