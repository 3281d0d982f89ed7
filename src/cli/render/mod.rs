//! Drawings of results and diagnostics for people and machines. Decides nothing.
