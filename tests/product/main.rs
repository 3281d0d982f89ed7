//! Tests of the product as a whole; one program, a module per subject.
