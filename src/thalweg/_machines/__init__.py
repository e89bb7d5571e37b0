"""Machines: what plays rounds in compiled code. One expert alone, a cover, levels, the reduction; and the loop."""
