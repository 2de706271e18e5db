"""Files of the kernels that ran: written, replayed, compared."""
