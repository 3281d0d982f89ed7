//! Runs a program over an activation, within the meter's limits.
