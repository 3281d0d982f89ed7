//! What is counted, and so can be asserted exactly, on any machine.

mod allocations;
