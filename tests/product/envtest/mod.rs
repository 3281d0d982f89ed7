//! `admit envtest`: the pair of programs as test harnesses start, use and stop it.

mod controller_manager;
mod harness;
mod harnesses;
mod persona;
mod readme;
