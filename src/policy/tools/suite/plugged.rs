//! Runs the admission plugins of a server, if supplied, on the requests of test cases.

use super::builtin::of_status;
use super::expect::Answer;
use crate::request::Request;
use crate::set::documents::Documents;
use crate::set::plugins::Plugged;

/// Lets plugins change the object. Answers whether they did.
pub(super) fn mutate(
    request: &mut Request<'_>,
    host: &Documents,
    assumed: &mut Vec<String>,
) -> Result<bool, Box<Answer>> {
    let Some(plugins) = host.plugins() else { return Ok(false) };
    let Plugged { object, refusal, assumed: more, .. } = plugins.mutate(request, host);
    assumed.extend(more);
    if let Some(status) = refusal {
        return Err(Box::new(of_status(&status)));
    }
    let is_changed = object.is_some();
    if let Some(object) = object {
        request.object = Some(object.into());
    }
    Ok(is_changed)
}

/// Asks those that look at the object.
pub(super) fn validate(
    request: &Request<'_>,
    host: &Documents,
    assumed: &mut Vec<String>,
) -> Result<(), Box<Answer>> {
    let Some(plugins) = host.plugins() else { return Ok(()) };
    let Plugged { refusal, assumed: more, .. } = plugins.validate(request, host);
    assumed.extend(more.into_iter().filter(|one| !assumed.contains(one)).collect::<Vec<_>>());
    refusal.map_or(Ok(()), |status| Err(Box::new(of_status(&status))))
}

/// Charges quotas for an admitted request.
pub(super) fn charge(request: &Request<'_>, host: &Documents) -> Option<Answer> {
    host.plugins()?.charge(request, host).map(|status| of_status(&status))
}
