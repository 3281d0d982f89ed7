//! The type of every expression and the overloads that each call may reach.
