"""Operations that a device lacks, as arithmetic."""
