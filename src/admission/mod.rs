//! The HTTPS edge of the policies: AdmissionReview in, decision out. What a request means is `admit_policy`'s to say.
//!
//! ```text
//! connection ──listen──► routes ──workers──► read ──► decide ──► Answer
//!              TLS, time   size,    queue,     bytes    CRDs and    bytes out, always 200
//!              limits      deadline stacks     to a     policies    when a uid is known
//!                                              request
//! ```
//!
//! What requests are decided by ([`InForce`], [`Cluster`]) arrives on watch channels from whoever loads or watches it;
//! certificates likewise.

mod beat;
mod body;
mod convert;
mod deadline;
mod decide;
mod in_force;
mod listen;
mod log;
mod observe;
mod queue;
mod resource;
mod review;
mod routes;
mod surroundings;
pub mod tls;
mod undecided;
mod workers;

pub use admit_serving::ServeError;
pub use convert::{Converter, Converters};
pub use in_force::{Broken, InForce};
pub use listen::{Port, Shutdown, serve};
pub use observe::Observed;
pub use review::Answer;
pub use routes::Admission;
pub use surroundings::Cluster;
pub use workers::Workers;
