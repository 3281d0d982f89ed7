//! Serves the policies as an HTTPS webhook: AdmissionReviews in, decisions out. `admit_policy` evaluates the requests.
//!
//! ```text
//! connection ──listen──► routes ──workers──► read ──► decide ──► Answer
//!              TLS, time   size,    queue,     bytes    CRDs and    bytes out, always 200
//!              limits      deadline stacks     to a     policies    when a uid is known
//!                                              request
//! ```
//!
//! The policies and the cluster's objects ([`InForce`], [`Cluster`]) arrive on watch channels from whoever loads or watches them;
//! certificates likewise.

mod body;
mod convert;
mod converters;
mod deadline;
mod decide;
mod decisions;
mod failure_answer;
mod listen;
mod log;
mod observe;
mod policy_host;
mod queue;
mod resource;
mod review;
mod routes;
mod snapshot;
mod ticker;
pub mod tls;
mod workers;

pub use admit_serving::ServeError;
pub use converters::{ConversionError, Converter, Converters};
pub use decisions::{Decisions, Noted};
pub use listen::{Port, Shutdown, serve};
pub use observe::Observed;
pub use policy_host::Cluster;
pub use review::Answer;
pub use routes::Admission;
pub use snapshot::{Broken, InForce};
pub use workers::Workers;
