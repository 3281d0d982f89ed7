//! Expressions that select devices (resource.k8s.io): what they may use, and what is wrong with one.
//!
//! Read from k8s.io/dynamic-resource-allocation/cel of Kubernetes 1.36.

use std::sync::{Arc, LazyLock};

use admit_cel::{DeclField, DeclKind, DeclType, Env, Mode, SizeHints, Type, Version};

/// Static cost that one expression may have.
const MOST_COST: u64 = 1_000_000;
/// Bytes of a driver's name.
const DRIVER_LENGTH: u64 = 63;
/// Attributes and capacities of one device.
const MOST_MEMBERS: u64 = 32;
/// Bytes of the text of an attribute.
const TEXT_LENGTH: u64 = 64;

static DEVICE: LazyLock<Arc<DeclType>> = LazyLock::new(|| Arc::new(device()));
static ENV: LazyLock<Env> =
    LazyLock::new(|| Env::kubernetes(Version(1, 36), Mode::New).with_variable("device", DEVICE.cel_type()));

/// What is wrong with a selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelectorProblem {
    /// It is no expression that yields a truth value, in these words.
    Invalid(String),
    /// It may take too long.
    TooComplex,
}

/// What is wrong with the expression of a selector of devices, if anything is.
///
/// ```
/// use admit_policy::selector_problem;
///
/// assert_eq!(selector_problem("device.driver == 'gpu.example.com'"), None);
/// assert!(selector_problem("device.driver").is_some(), "no truth value");
/// ```
#[must_use]
pub fn selector_problem(text: &str) -> Option<SelectorProblem> {
    let checked = match ENV.compile(text) {
        Ok(checked) => checked,
        Err(error) => return Some(SelectorProblem::Invalid(format!("compilation failed: {error}"))),
    };
    let output = checked.output_type();
    if !matches!(output, Type::Bool | Type::Dyn) {
        let found = output.with_full_names();
        let why = format!("must evaluate to bool or the unknown type, not {found}");
        return Some(SelectorProblem::Invalid(why));
    }
    if let Err(error) = ENV.program(&checked) {
        return Some(SelectorProblem::Invalid(error.to_string()));
    }
    let hints = SizeHints { root: Some(Arc::clone(&DEVICE)) };
    (checked.estimate(&hints).max > MOST_COST).then_some(SelectorProblem::TooComplex)
}

/// A device: its driver, and for each domain what it is and has.
fn device() -> DeclType {
    let sized = |ty, size| DeclType { max_elements: Some(size), ..DeclType::unbounded(DeclKind::Scalar(ty)) };
    let by_name = |value: DeclType| {
        let map = |value: DeclType| DeclType {
            max_elements: Some(MOST_MEMBERS),
            ..DeclType::unbounded(DeclKind::Map {
                key: Arc::new(sized(Type::String, DRIVER_LENGTH)),
                value: Arc::new(value),
            })
        };
        map(map(value))
    };
    let quantity = DeclType::unbounded(DeclKind::Scalar(Type::Opaque("kubernetes.Quantity".into())));
    let field = |name: &str, decl: DeclType| DeclField {
        name: name.into(),
        cel_name: name.into(),
        decl: Arc::new(decl),
        required: true,
    };
    // In the order of their names.
    let fields = vec![
        field("allowMultipleAllocations", DeclType::unbounded(DeclKind::Scalar(Type::Bool))),
        field("attributes", by_name(sized(Type::Dyn, TEXT_LENGTH))),
        field("capacity", by_name(quantity)),
        field("driver", sized(Type::String, DRIVER_LENGTH)),
    ];
    DeclType::unbounded(DeclKind::Object { name: "kubernetes.DRADevice".into(), fields: fields.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_yield_truth_values() {
        let fine = [
            "device.driver == 'gpu.example.com'",
            "device.attributes['gpu.example.com'].model.startsWith('a')",
            "device.capacity['gpu.example.com'].memory.compareTo(quantity('10Gi')) >= 0",
            "true",
        ];
        for text in fine {
            assert_eq!(selector_problem(text), None, "{text}");
        }
        assert_eq!(
            selector_problem("-5"),
            Some(SelectorProblem::Invalid("must evaluate to bool or the unknown type, not int".to_owned()))
        );
        let Some(SelectorProblem::Invalid(why)) = selector_problem("devices") else { panic!("no device") };
        assert!(why.starts_with("compilation failed: ERROR: <input>:1:1: undeclared reference to 'devices'"));
        let nested = "device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, \
                      device.attributes.all(d, a == b && c == d))))";
        assert_eq!(selector_problem(nested), Some(SelectorProblem::TooComplex));
    }
}
