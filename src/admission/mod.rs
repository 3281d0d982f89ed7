//! The HTTPS edge of the policies: AdmissionReview in, decision out. What a request means is `admit_policy`'s to say.
//!
//! ```text
//! connection ──listen──► routes ──review──► PolicySet::decide ──review──► AdmissionReview
//!              TLS, limits        bytes in    on a blocking thread         bytes out, always 200 when a uid is known
//! ```

mod listen;
mod review;
mod routes;
#[cfg(test)]
mod tests;
pub mod tls;

pub use listen::{ServeError, serve};
pub use review::Answer;
pub use routes::{Admission, Namespaces};
