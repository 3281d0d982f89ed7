//! Turns policy documents into a `PolicySet` and a request into a `Decision`. Pure functions, no I/O.
