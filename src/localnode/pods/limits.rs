//! Reads the limits of a container from its `resources.limits`.

use k8s_openapi::api::core::v1::{Container, Pod};

use super::super::cgroups::{Bounds, Groups, Kind};

/// Returns the supported limits of a container.
pub(super) fn bounds(container: &Container) -> Bounds {
    let limits = container.resources.as_ref().and_then(|resources| resources.limits.as_ref());
    let thousandths = |kind: Kind| thousandths(&limits?.get(kind.name())?.0);
    Bounds {
        cpu: thousandths(Kind::Cpu).filter(|amount| *amount > 0),
        memory: thousandths(Kind::Memory).map(|amount| amount.div_ceil(1_000)).filter(|bytes| *bytes > 0),
    }
}

/// Returns the limits of a container that are not enforced here.
pub(super) fn unheld(container: &Container, groups: &Groups) -> Vec<String> {
    let limits = container.resources.iter().flat_map(|resources| resources.limits.iter().flatten());
    let held =
        |name: &str| [Kind::Cpu, Kind::Memory].iter().any(|kind| kind.name() == name && groups.holds(*kind));
    limits.filter(|(name, _)| !held(name)).map(|(name, _)| format!("resources.limits.{name}")).collect()
}

/// Whether a Pod has limits that would be enforced with control groups.
pub(super) fn are_missed(pod: &Pod, groups: &Groups) -> bool {
    let spec = pod.spec.iter();
    let mut containers = spec.flat_map(|spec| spec.init_containers.iter().flatten().chain(&spec.containers));
    containers.any(|container| {
        let Bounds { cpu, memory } = bounds(container);
        (cpu.is_some() && !groups.holds(Kind::Cpu)) || (memory.is_some() && !groups.holds(Kind::Memory))
    })
}

/// Converts a quantity to thousandths, rounded up; None if the text is not a quantity, or it is too large.
fn thousandths(text: &str) -> Option<u64> {
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, suffix) = text.split_at_checked(split)?;
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let mantissa: u128 = format!("{whole}{part}").parse().ok()?;
    let (times, tens): (u128, i32) = match suffix {
        "" => (1, 0),
        "n" => (1, -9),
        "u" => (1, -6),
        "m" => (1, -3),
        "k" => (1, 3),
        "M" => (1, 6),
        "G" => (1, 9),
        "T" => (1, 12),
        "P" => (1, 15),
        "E" => (1, 18),
        "Ki" => (1 << 10, 0),
        "Mi" => (1 << 20, 0),
        "Gi" => (1 << 30, 0),
        "Ti" => (1 << 40, 0),
        "Pi" => (1 << 50, 0),
        "Ei" => (1 << 60, 0),
        exponent => (1, exponent.strip_prefix(['e', 'E'])?.parse().ok()?),
    };
    let tens = tens.checked_add(3)?.checked_sub(i32::try_from(part.len()).ok()?)?;
    let power = 10_u128.checked_pow(tens.unsigned_abs());
    let amount = mantissa.checked_mul(times)?;
    let amount = if tens < 0 {
        power.map_or(u128::from(amount > 0), |power| amount.div_ceil(power))
    } else {
        amount.checked_mul(power?)?
    };
    u64::try_from(amount).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn quantities_are_read_in_all_their_forms() {
        for (text, expected) in [
            ("1", 1_000),
            ("500m", 500),
            ("0.1", 100),
            (".5", 500),
            ("1.0005", 1_001),
            ("100n", 1),
            ("64Mi", 67_108_864_000),
            ("1.5Gi", 1_610_612_736_000),
            ("1G", 1_000_000_000_000),
            ("2e3", 2_000_000),
            ("5E-1", 500),
            ("0", 0),
        ] {
            assert_eq!(thousandths(text), Some(expected), "{text}");
        }
        for text in ["", "x", "1Xi", "1e", "99999999Ei", "-1"] {
            assert_eq!(thousandths(text), None, "{text}");
        }
    }

    #[test]
    fn limits_are_those_of_memory_and_cpu() {
        let container: Container = serde_json::from_value(json!({"name": "c", "resources": {
            "limits": {"cpu": "250m", "memory": "1500m", "ephemeral-storage": "1Gi"}, "requests": {"memory": "1"}}}))
        .unwrap();
        assert_eq!(bounds(&container), Bounds { cpu: Some(250), memory: Some(2) });
        assert_eq!(bounds(&Container::default()), Bounds::default());
    }
}
