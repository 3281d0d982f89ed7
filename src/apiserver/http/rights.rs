//! Authorizes requests, including the right to impersonate. Most users have some hundred rules, which are evaluated
//! on the connection's thread; users with tens of thousands of rules wait in the queue of lists, so that they delay
//! nobody else.

use admit_policy::{Access, AccessAttributes};
use http::HeaderMap;
use tokio::time::Instant;

use super::{deadline, impersonation};
use crate::identity::Identity;
use crate::registry::Registry;
use crate::server::Server;
use crate::status::Refusal;

/// The number of rules that are evaluated at once: takes some tenths of a millisecond.
const AT_ONCE: usize = 10_000;

/// Returns the identity that a request of `own` acts as.
///
/// # Errors
/// 400 for headers that name no user, 403 if the caller may not impersonate the user.
pub(super) async fn acting(
    server: &Server,
    own: Identity,
    headers: &HeaderMap,
    attributes: &AccessAttributes,
) -> Result<Identity, Refusal> {
    let questions = impersonation::questions(headers);
    if questions == 0 {
        return impersonation::acting(server.registry(), own, headers, attributes);
    }
    // Impersonated service accounts are checked in their own namespaces.
    let effort = server.registry().effort(&own, None).saturating_mul(questions);
    let (caller, headers, attributes) = (own.clone(), headers.clone(), attributes.clone());
    let ask = move |registry: &Registry| impersonation::acting(registry, own, &headers, &attributes);
    with_effort(server, &caller, effort, ask).await?
}

/// Returns whether `user` may do it, and why.
///
/// # Errors
/// If there was no decision in time.
pub(super) async fn access(
    server: &Server,
    user: &Identity,
    attributes: &AccessAttributes,
) -> Result<Access, Refusal> {
    let effort = server.registry().effort(user, Some(attributes));
    if effort <= AT_ONCE {
        return Ok(server.registry().access(user, attributes));
    }
    let (asked, attributes) = (user.clone(), attributes.clone());
    with_effort(server, user, effort, move |registry: &Registry| registry.access(&asked, &attributes)).await
}

/// Runs `ask`, which evaluates so many rules: here, or on a thread of its own.
async fn with_effort<T: Send + 'static>(
    server: &Server,
    user: &Identity,
    effort: usize,
    ask: impl FnOnce(&Registry) -> T + Send + 'static,
) -> Result<T, Refusal> {
    if effort <= AT_ONCE {
        return Ok(ask(server.registry()));
    }
    let (shared, until) = (server.clone(), Instant::now() + deadline::LONGEST);
    let asked = server.turns().list(user, until, move || async move { ask(shared.registry()) });
    asked.await.map_err(Refusal::from)
}
