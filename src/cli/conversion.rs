//! Lists the kinds that the webhook converts between API versions: those of this program's controllers with several served versions.

use admit_policy::crd::{Definition, Inconvertible};
use serde_json::{Value, json};

use crate::admission::{ConversionError, Converter, Converters};
use crate::controllers::datagather::versions::{DATA_GATHER, INSIGHTS_DATA_GATHER, Kind, VERSIONS, shape_of};

/// The path of conversion requests in CRDs.
pub(super) const PATH: &str = "/convert";
/// The file names of the shipped CRDs of these kinds.
pub(super) const DEFINITIONS: [&str; 2] =
    ["datagathers.insights.openshift.io", "insightsdatagathers.config.openshift.io"];

/// Sets the address of this program's webhook in a CRD whose objects it converts; returns other CRDs unchanged.
pub(super) fn called_at(definition: &Value, client_config: &Value) -> Value {
    let mut definition = definition.clone();
    let name = definition.pointer("/metadata/name").and_then(Value::as_str);
    let ours = name.is_some_and(|name| DEFINITIONS.contains(&name));
    let conversion = definition.pointer_mut("/spec/conversion").filter(|_| ours);
    if let Some(conversion) = conversion.filter(|conversion| conversion["strategy"] == "Webhook") {
        conversion["webhook"] = json!({"conversionReviewVersions": ["v1"], "clientConfig": client_config});
    }
    definition
}

/// Returns the converters of all these kinds.
#[must_use]
pub fn converters() -> Converters {
    let of = |kind: Kind, convert| Converter {
        group: kind.group,
        kind: kind.kind,
        versions: VERSIONS.iter().map(|(version, _)| *version).collect(),
        convert,
    };
    vec![
        of(DATA_GATHER, |object, from, to| converted(DATA_GATHER, object, from, to)),
        of(INSIGHTS_DATA_GATHER, |object, from, to| converted(INSIGHTS_DATA_GATHER, object, from, to)),
    ]
    .into()
}

/// Returns the converter of a CRD that names this program's webhook, for commands that run without it.
pub(super) fn offline(
    definition: &Definition,
    object: &mut Value,
    from: &str,
    to: &str,
) -> Option<Result<(), Inconvertible>> {
    let client = definition.conversion.as_ref()?.webhook.as_ref()?.client.as_ref()?;
    client.service.as_ref().filter(|service| service.path == PATH)?;
    let is_of = |kind: &Kind| kind.group == definition.group && kind.kind == definition.names.kind;
    let kind = [DATA_GATHER, INSIGHTS_DATA_GATHER].into_iter().find(is_of)?;
    let unread = |error: ConversionError| Inconvertible::InvalidObject(error.to_string());
    Some(converted(kind, object, from, to).map_err(unread))
}

fn converted(kind: Kind, object: &mut Value, from: &str, to: &str) -> Result<(), ConversionError> {
    let (Some(from), Some(to)) = (shape_of(from), shape_of(to)) else {
        return Err(ConversionError::InvalidObject(format!("{from} or {to} is no version of it")));
    };
    (kind.convert)(object, from, to).map_err(|why| ConversionError::InvalidObject(why.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_definitions_of_ours_that_ask_a_webhook_are_told_where_it_is() {
        let definition = |name: &str, strategy: &str| json!({"metadata": {"name": name}, "spec": {"conversion": {"strategy": strategy}}});
        let config = json!({"url": "https://127.0.0.1:1/convert"});
        for ours in DEFINITIONS {
            let called = called_at(&definition(ours, "Webhook"), &config);
            assert_eq!(called["spec"]["conversion"]["webhook"]["clientConfig"], config);
        }
        for other in
            [definition(DEFINITIONS[0], "None"), definition("cats.example.com", "Webhook"), json!({})]
        {
            assert_eq!(called_at(&other, &config), other);
        }
    }
}
