//! Claims about all objects: the encoding against the engine, the solvers against each other, and claims known by hand.

mod agreement;
mod apart;
mod builtin;
mod dice;
mod guesses;
mod large;
mod many_pairs;
mod optionals;
mod random_shapes;
mod random_upgrades;
mod requests;
/// The processes are those of `admit prove`.
#[path = "../../../src/cli/prove/session.rs"]
mod session;
mod shapes;
mod share;
pub(crate) mod solvers;
mod stable;
mod table;
mod upgrades;
