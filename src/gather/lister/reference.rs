//! Reads an object that another object refers to.

use std::fmt;

use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use serde_json::Value;

use super::super::failure::Failure;
use super::super::gatherer::Context;

#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(in super::super) struct Reference {
    pub(in super::super) group: String,
    pub(in super::super) plural: String,
    pub(in super::super) namespace: Option<String>,
    pub(in super::super) name: String,
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, plural, namespace, name } = self;
        match namespace {
            Some(namespace) => write!(f, "{plural}.{group} {namespace}/{name}"),
            None => write!(f, "{plural}.{group} {name}"),
        }
    }
}

/// Reads the object; `None` if it does not exist.
///
/// # Errors
/// [`Failure::Unreadable`] for an invalid name, [`Failure::Api`] otherwise.
pub(in super::super) async fn get_reference(
    context: &Context,
    reference: &Reference,
    version: &str,
) -> Result<Option<Value>, Failure> {
    let Reference { group, plural, namespace, name } = reference;
    // The parts come from a status that anybody may have written, and become parts of a URL.
    let parts = [group.as_str(), plural, name].into_iter().chain(namespace.as_deref());
    if !parts.into_iter().all(is_plain) {
        let why = "it is named by what can be no name".to_owned();
        return Err(Failure::Unreadable { what: reference.to_string().escape_default().to_string(), why });
    }
    let kind = GroupVersionKind::gvk(group, version, "");
    let resource = ApiResource::from_gvk_with_plural(&kind, plural);
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(context.client.clone(), namespace, &resource),
        None => Api::all_with(context.client.clone(), &resource),
    };
    match api.get(name).await {
        Ok(object) => Ok(serde_json::to_value(object).ok()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(Failure::Api { what: reference.to_string(), source: Box::new(error) }),
    }
}

fn is_plain(part: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b':' | b'_');
    !matches!(part, "" | "." | "..") && part.len() <= 253 && part.bytes().all(legal)
}

#[cfg(test)]
mod tests {
    use super::is_plain;

    #[test]
    fn what_would_be_another_url_is_no_name() {
        for part in ["", ".", "..", "a/b", "a?b", "a%2fb", "ä", "a b", &"a".repeat(254)] {
            assert!(!is_plain(part), "{part}");
        }
        assert!(is_plain("ingress-controller.v1") && is_plain("system:node"));
    }
}
