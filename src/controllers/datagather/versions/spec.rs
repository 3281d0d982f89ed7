//! Converts the spec of a DataGather: what to gather, and how much of it to obfuscate. The storage of archives is the
//! same in all versions.

use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use super::{Inconvertible, put_unless_empty, taken_list, text};

pub(super) const HIDDEN_NETWORKS: &str = "ObfuscateNetworking";
const HIDDEN_NAMES: &str = "WorkloadNames";

type Members = Map<String, Value>;

pub(super) fn to_lists(spec: &mut Members, path: &str) -> Result<(), Inconvertible> {
    policy_to_list(spec, "ClearText", path)?;
    let mut configs: IndexMap<String, Value> = IndexMap::new();
    // Entries under the later name are applied after those under the first.
    for name in ["gatherersConfig", "gatherers"] {
        for config in taken_list(spec, name, path)? {
            put_config(&mut configs, config);
        }
    }
    let configs: Vec<Value> = configs.into_values().collect();
    let gatherers = match configs.is_empty() {
        true => json!({"mode": "All"}),
        false => json!({"mode": "Custom", "custom": {"configs": configs}}),
    };
    spec.insert("gatherers".to_owned(), gatherers);
    Ok(())
}

pub(super) fn to_words(spec: &mut Members, path: &str) -> Result<(), Inconvertible> {
    policy_to_word(spec, path)?;
    let mode = taken_mode(spec, path)?;
    if mode.word == "None" {
        return Err(Inconvertible::new(&format!("{path}.gatherers.mode"), "a DataGather gathers something"));
    }
    put_unless_empty(spec, "gatherersConfig", mode.configs);
    Ok(())
}

/// The meaning of a mode.
pub(super) struct Mode {
    pub(super) word: String,
    pub(super) configs: Vec<Value>,
}

/// Removes `gatherers` from a spec of the later versions.
pub(super) fn taken_mode(spec: &mut Members, path: &str) -> Result<Mode, Inconvertible> {
    let path = format!("{path}.gatherers");
    let mut gatherers = match spec.shift_remove("gatherers") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(gatherers)) => gatherers,
        Some(_) => return Err(Inconvertible::new(&path, "it is no object")),
    };
    let mode = text(gatherers.get("mode")).to_owned();
    match mode.as_str() {
        "" | "All" | "None" => Ok(Mode { word: mode, configs: Vec::new() }),
        "Custom" => {
            let path = format!("{path}.custom");
            let configs = match gatherers.get_mut("custom") {
                None | Some(Value::Null) => Vec::new(),
                Some(Value::Object(custom)) => taken_list(custom, "configs", &path)?,
                Some(_) => return Err(Inconvertible::new(&path, "it is no object")),
            };
            Ok(Mode { word: mode, configs })
        }
        other => Err(Inconvertible::new(&format!("{path}.mode"), format!("`{other}` is not known"))),
    }
}

/// Adds an entry; of two entries for one gatherer the later one counts. Without a state a gatherer is enabled.
fn put_config(configs: &mut IndexMap<String, Value>, mut config: Value) {
    if let Value::Object(members) = &mut config
        && text(members.get("state")).is_empty()
    {
        members.insert("state".to_owned(), "Enabled".into());
    }
    configs.insert(text(config.get("name")).to_owned(), config);
}

/// Converts the word `dataPolicy` to a list; `nothing` is the word for no obfuscation.
pub(super) fn policy_to_list(spec: &mut Members, nothing: &str, path: &str) -> Result<(), Inconvertible> {
    match spec.shift_remove("dataPolicy") {
        None | Some(Value::Null) => {}
        Some(Value::String(word)) if word.is_empty() || word == nothing => {}
        Some(Value::String(word)) if word == HIDDEN_NETWORKS => {
            spec.insert("dataPolicy".to_owned(), json!([HIDDEN_NETWORKS]));
        }
        Some(other) => {
            let why = format!("`{}` is not known", text(Some(&other)));
            return Err(Inconvertible::new(&format!("{path}.dataPolicy"), why));
        }
    }
    Ok(())
}

/// Converts the list `dataPolicy` to a word. Fails if the list obfuscates more than any word.
pub(super) fn policy_to_word(spec: &mut Members, path: &str) -> Result<(), Inconvertible> {
    let policies = taken_list(spec, "dataPolicy", path)?;
    for policy in &policies {
        let why = match text(Some(policy)) {
            HIDDEN_NETWORKS => continue,
            HIDDEN_NAMES => {
                format!("v1alpha1 has no word for {HIDDEN_NAMES}, and names of workloads cannot be hidden")
            }
            other => format!("`{other}` is not known"),
        };
        return Err(Inconvertible::new(&format!("{path}.dataPolicy"), why));
    }
    if !policies.is_empty() {
        spec.insert("dataPolicy".to_owned(), HIDDEN_NETWORKS.into());
    }
    Ok(())
}
