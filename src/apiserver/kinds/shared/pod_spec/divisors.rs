//! Sets the default divisors of resource field references, which are stored as zero.
//!
//! They are set after field ownership is computed: an absent divisor differs from the stored zero, so that a client who
//! replaces an object without it becomes the owner of the list around it.

use serde_json::{Value, json};

use crate::object;

/// Sets missing divisors in all pod specifications of the object.
pub(crate) fn write_divisors(object: &mut Value) {
    for place in super::SPECS {
        let Some(spec) = super::at_mut(object, place) else { continue };
        for list in super::LISTS {
            for container in each(spec, list) {
                each(container, "env")
                    .for_each(|variable| write(variable.pointer_mut("/valueFrom/resourceFieldRef")));
            }
        }
        for volume in each(spec, "volumes") {
            if let Some(source) = volume.get_mut("downwardAPI") {
                files(source);
            }
            if let Some(projected) = volume.get_mut("projected") {
                each(projected, "sources").filter_map(|source| source.get_mut("downwardAPI")).for_each(files);
            }
        }
    }
}

fn files(source: &mut Value) {
    each(source, "items").for_each(|file| write(file.get_mut("resourceFieldRef")));
}

fn write(reference: Option<&mut Value>) {
    if let Some(reference) =
        reference.filter(|reference| reference.is_object() && reference.get("divisor").is_none())
    {
        object::set_field(reference, "divisor", Some(json!("0")));
    }
}

fn each<'v>(value: &'v mut Value, list: &str) -> impl Iterator<Item = &'v mut Value> {
    value.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisors_are_zero_where_they_were_left_out() {
        let reference = |divisor: Option<&str>| {
            let mut reference = json!({"resource": "limits.cpu"});
            object::set_field(&mut reference, "divisor", divisor.map(Value::from));
            reference
        };
        let pod = |divisors: [Option<&str>; 2]| {
            let [one, other] = divisors.map(reference);
            json!({"spec": {
                "containers": [{"env": [{"valueFrom": {"resourceFieldRef": one}}]}],
                "volumes": [{"downwardAPI": {"items": [{"resourceFieldRef": other}]}}]
            }})
        };
        let mut object = pod([Some("1m"), None]);
        write_divisors(&mut object);
        assert_eq!(object, pod([Some("1m"), Some("0")]));
    }
}
