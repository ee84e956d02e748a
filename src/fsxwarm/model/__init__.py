"""Pure decisions: what to ask for, when, and what an answer means. No I/O, no clock, no chance."""
