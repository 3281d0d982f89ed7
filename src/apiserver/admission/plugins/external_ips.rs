//! Implements `DenyServiceExternalIPs`: Services keep the external IPs that they have and get no new ones. Off by default.

use serde_json::Value;

use super::alone::Alone;
use super::pods::items;
use super::{Plugin, Request};
use crate::status::Refusal;

pub(super) const PLUGIN: Plugin =
    Plugin { name: "DenyServiceExternalIPs", mutate: None, validate: Some(validate), alone: Alone::Acts };

fn validate(request: &Request<'_>) -> Result<(), Refusal> {
    if !request.creates("", "services") && !request.updates("", "services") {
        return Ok(());
    }
    let known: Vec<&Value> = items(request.old(), "/spec/externalIPs").collect();
    if items(request.object(), "/spec/externalIPs").all(|address| known.contains(&address)) {
        return Ok(());
    }
    Err(request.forbidden("Use of external IPs is denied by admission control"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::admission::plugins::tests::{Asked, mutated, refused};

    #[test]
    fn services_get_no_new_addresses() {
        let service = |addresses: Value| json!({"metadata": {"name": "s", "namespace": "n"}, "spec": {"externalIPs": addresses}});
        let (none, one, two) =
            (service(json!([])), service(json!(["1.1.1.1"])), service(json!(["1.1.1.1", "2.2.2.2"])));
        let says = "services \"s\" is forbidden: Use of external IPs is denied by admission control";
        assert_eq!(refused(&PLUGIN, "services", &one), says);
        assert_eq!(mutated(&PLUGIN, "services", &none).unwrap(), None);
        let update = |old, new| Asked { old: Some(old), ..Asked::create("services", new, &[]) }.of(&PLUGIN);
        assert!(update(&two, &one).is_ok() && update(&one, &one).is_ok());
        assert_eq!(update(&one, &two).unwrap_err().message(), says);
    }
}
