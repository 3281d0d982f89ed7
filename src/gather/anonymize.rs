//! Anonymises field values: hides a value, but keeps what shows a reader that it was set.

use serde_json::Value;

/// Returns one `x` per character of the text.
pub fn string(text: &str) -> String {
    "x".repeat(text.chars().count())
}

/// Hides the words of a URL but not its structure: every character but `.`, `-`, `/` and `:` becomes `x`.
pub fn url(text: &str) -> String {
    text.chars().map(|c| if matches!(c, '.' | '-' | '/' | ':') { c } else { 'x' }).collect()
}

/// Replaces each PEM block by the word `ANONYMIZED`. A block without its end hides all that follows.
pub fn pem_blocks(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("-----BEGIN ") {
        out.push_str(&rest[..start]);
        out.push_str("ANONYMIZED");
        rest = after_block(&rest[start..]);
    }
    out + rest
}

fn after_block(block: &str) -> &str {
    let Some(end) = block.find("-----END ") else { return "" };
    let tail = &block[end + "-----END ".len()..];
    tail.find("-----").map_or("", |close| &tail[close + "-----".len()..])
}

/// Masks the values of proxy variables, which may carry credentials, in every container of a pod spec.
pub fn proxy_variables(pod: &mut Value) {
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        let containers = pod.pointer_mut(&format!("/spec/{list}")).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let variables = container.get_mut("env").and_then(Value::as_array_mut);
            variables.into_iter().flatten().for_each(mask_proxy);
        }
    }
}

fn mask_proxy(variable: &mut Value) {
    let name = variable.get("name").and_then(Value::as_str).unwrap_or_default().to_ascii_uppercase();
    if !name.contains("HTTP_PROXY") && !name.contains("HTTPS_PROXY") {
        return;
    }
    if let Some(Value::String(value)) = variable.get_mut("value") {
        *value = string(value);
    }
}

/// Anonymises the string at `pointer` with the given function, if there is one.
pub fn field(document: &mut Value, pointer: &str, with: fn(&str) -> String) {
    if let Some(Value::String(text)) = document.pointer_mut(pointer) {
        *text = with(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn urls_keep_their_shape() {
        assert_eq!(url("https://user:pw@proxy-1.corp:3128/a?b"), "xxxxx://xxxx:xxxxxxxx-x.xxxx:xxxx/xxx");
        assert_eq!(string("gehëim"), "xxxxxx");
    }

    #[test]
    fn pem_blocks_are_replaced_whole() {
        let cert = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----";
        assert_eq!(pem_blocks(&format!("a\n{cert}\nb {cert}")), "a\nANONYMIZED\nb ANONYMIZED");
        assert_eq!(pem_blocks("-----BEGIN RSA PRIVATE KEY-----\nMIIB"), "ANONYMIZED");
        assert_eq!(pem_blocks("no block"), "no block");
    }

    #[test]
    fn proxies_are_masked_and_other_variables_are_not() {
        let mut pod = json!({"spec": {
            "containers": [{"env": [{"name": "HTTPS_PROXY", "value": "u:p@h"}, {"name": "A", "value": "b"}]}],
            "initContainers": [{"env": [{"name": "http_proxy", "value": "h"}, {"name": "NO_PROXY", "value": "c"}]}],
        }});
        proxy_variables(&mut pod);
        assert_eq!(
            pod,
            json!({"spec": {
                "containers": [{"env": [{"name": "HTTPS_PROXY", "value": "xxxxx"}, {"name": "A", "value": "b"}]}],
                "initContainers": [{"env": [{"name": "http_proxy", "value": "x"}, {"name": "NO_PROXY", "value": "c"}]}],
            }})
        );
    }
}
