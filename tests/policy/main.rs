//! Tests of the admit-policy package; one program, a module per subject.
