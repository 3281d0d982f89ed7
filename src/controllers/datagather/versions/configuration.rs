//! Converts the spec of an InsightsDataGather, which configures periodic gatherings.

use indexmap::IndexSet;
use serde_json::{Value, json};

use super::spec::{policy_to_list, policy_to_word, taken_mode};
use super::{Inconvertible, Shape, member, taken_list, text};

const PATH: &str = "spec.gatherConfig";
/// The entry that disables all gatherers.
const ALL: &str = "all";

pub(super) fn convert(object: &mut Value, from: Shape, to: Shape) -> Result<(), Inconvertible> {
    if from == to || member(object, "spec")?.is_none() {
        return Ok(());
    }
    let Some(Value::Object(config)) = object.pointer_mut("/spec/gatherConfig") else { return Ok(()) };
    match to {
        Shape::Lists => {
            policy_to_list(config, "None", PATH)?;
            let disabled = taken_list(config, "disabledGatherers", PATH)?;
            let is_all = |name: &Value| text(Some(name)).eq_ignore_ascii_case(ALL);
            let gatherers = if disabled.iter().any(is_all) {
                json!({"mode": "None"})
            } else if disabled.is_empty() {
                json!({"mode": "All"})
            } else {
                let configs: Vec<Value> =
                    disabled.into_iter().map(|name| json!({"name": name, "state": "Disabled"})).collect();
                json!({"mode": "Custom", "custom": {"configs": configs}})
            };
            config.insert("gatherers".to_owned(), gatherers);
        }
        Shape::Words => {
            policy_to_word(config, PATH)?;
            let mode = taken_mode(config, PATH)?;
            let disabled = match mode.word.as_str() {
                "None" => vec![ALL.into()],
                _ => disabled(&mode.configs)?,
            };
            config.insert("disabledGatherers".to_owned(), Value::Array(disabled));
        }
    }
    Ok(())
}

/// Returns the names of disabled gatherers. An enabled one is the default, unless its group is disabled: v1alpha1 would then
/// disable it too, so that is an error.
fn disabled(configs: &[Value]) -> Result<Vec<Value>, Inconvertible> {
    let name = |config: &Value| text(config.get("name")).to_owned();
    let (disabled, enabled): (Vec<&Value>, Vec<&Value>) =
        configs.iter().partition(|config| text(config.get("state")) == "Disabled");
    let disabled: IndexSet<String> = disabled.into_iter().map(name).collect();
    for kept in enabled.into_iter().map(name) {
        let group = kept.split_once('/').map(|(group, _)| group);
        if group.is_some_and(|group| disabled.contains(group)) {
            let why = format!("v1alpha1 cannot say that `{kept}` is enabled in a group that is disabled");
            return Err(Inconvertible::new(&format!("{PATH}.gatherers.custom.configs"), why));
        }
    }
    Ok(disabled.into_iter().map(Value::from).collect())
}
