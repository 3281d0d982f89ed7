//! Compiles CEL expressions that select devices, and reports what is wrong with one.
//!
//! Read from k8s.io/dynamic-resource-allocation/cel of Kubernetes 1.36.

use std::sync::{Arc, LazyLock};

use admit_cel::{
    Bindings, Bounds, CallEstimate, Context, DeclField, DeclKind, DeclType, Env, EvalError, Evaluation,
    Extra, Mode, Opaque, Overload, Program, SizeHints, Type, Value, Version, runtime_type,
};
use bumpalo::Bump;

use super::device::Device;
use super::error::{DeviceError, SelectorError};
use super::features::DeviceFeatures;
use crate::report::options::EvalOptions;
use crate::report::recording::{self, ExpressionId, Subject};

/// Static cost that one expression may have, and cost of one evaluation.
pub const SELECTOR_LIMIT: u64 = 1_000_000;
/// Bytes of a driver's name.
const DRIVER_LENGTH: u64 = 63;
/// Attributes and capacities of one device.
const MOST_MEMBERS: u64 = 32;
/// The maximum length of a string attribute, in bytes.
const TEXT_LENGTH: u64 = 64;
/// Values of one attribute that is a list.
const MOST_VALUES: u64 = 48;

/// A selector, compiled as one that is to be stored.
///
/// ```
/// use admit_policy::{Device, DeviceFeatures, EvalOptions, Selector};
/// use serde_json::json;
///
/// let selector = Selector::compile("device.attributes['gpu.example.com'].cores > 8", DeviceFeatures::default()).unwrap();
/// assert_eq!((selector.text(), selector.max_cost()), ("device.attributes['gpu.example.com'].cores > 8", 5));
/// let device = json!({"name": "gpu-0", "attributes": {"cores": {"int": 16}}});
/// let device = Device::read("gpu.example.com", "pool", &device)?;
/// assert_eq!(selector.matches(&device, EvalOptions::default()), Ok(true));
/// # Ok::<(), admit_policy::FieldsError>(())
/// ```
#[derive(Debug)]
pub struct Selector {
    text: String,
    program: Program,
    max_cost: u64,
    features: DeviceFeatures,
    /// Its identity in recordings.
    id: Option<ExpressionId>,
}

impl Selector {
    /// Compiles a selector.
    ///
    /// # Errors
    /// If it is invalid. A selector that is too expensive is not an error here: see [`Self::max_cost`].
    pub fn compile(text: &str, features: DeviceFeatures) -> Result<Self, SelectorError> {
        let env = env(features);
        let checked = env.compile(text).map_err(SelectorError::Compile)?;
        let output = checked.output_type();
        let is_truth = match output {
            Type::Bool | Type::Any => true,
            Type::Dyn => features.list_attributes,
            _ => false,
        };
        if !is_truth {
            return Err(SelectorError::NoTruth(output.with_full_names().to_string()));
        }
        let program = env.program(&checked).map_err(SelectorError::Program)?;
        let hints = SizeHints { root: Some(sizes(features)) };
        let max_cost = checked.estimate(&hints).max;
        Ok(Self { text: text.to_owned(), program, max_cost, features, id: None })
    }

    /// Returns the selector with its location in a document.
    pub(super) fn placed(self, id: ExpressionId) -> Self {
        Self { id: Some(id), ..self }
    }

    /// Returns the text of the selector.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What an evaluation costs at most.
    #[must_use]
    pub const fn max_cost(&self) -> u64 {
        self.max_cost
    }

    /// Returns the expression for recordings, if it is in a document.
    pub(super) fn listed(&self) -> Option<recording::Expression<'_>> {
        let id = self.id.clone()?;
        Some(recording::Expression { id, text: &self.text, program: &self.program })
    }

    /// Whether the selector selects a device.
    ///
    /// # Errors
    /// Why that is unknown, in the words of the scheduler.
    pub fn matches(&self, device: &Device, options: EvalOptions<'_>) -> Result<bool, DeviceError> {
        let arena = Bump::new();
        let members = device.members(&arena, self.features)?;
        let mut bindings = Bindings::new(&self.program);
        bindings.set("device", members);
        let mut evaluation = Evaluation::new(&arena).per_call_limit(SELECTOR_LIMIT);
        if let Some(deadline) = options.deadline {
            evaluation = evaluation.deadline(deadline.as_fn());
        }
        let value = match (options.recording, &self.id) {
            (Some(recording), Some(id)) => {
                let subject = Subject { id: &|| id.clone(), text: &self.text, at: &|| device.to_string() };
                recording.eval(&subject, &self.program, &bindings, &mut evaluation)
            }
            _ => self.program.eval(&bindings, &mut evaluation),
        };
        match value? {
            Value::Bool(matches) => Ok(matches),
            other => Err(DeviceError::NoTruth {
                found: runtime_type::name_of(&other).to_owned(),
                why: unconverted(&other),
            }),
        }
    }
}

/// Explains why a value is not a boolean, in terms of its Go type.
fn unconverted(value: &Value<'_>) -> String {
    let name = match value {
        Value::String(_) => return "unsupported native conversion from string to 'bool'".to_owned(),
        Value::Int(_) => return "unsupported type conversion from 'int' to bool".to_owned(),
        Value::Uint(_) => return "unsupported type conversion from 'uint' to bool".to_owned(),
        Value::Double(_) => "Double",
        Value::Bytes(_) => "Bytes",
        Value::List(_) => "list",
        Value::Map(_) => "map",
        Value::Timestamp(_) => "'Timestamp'",
        Value::Duration(_) => "'Duration'",
        Value::Opaque(Opaque::Quantity(_)) => "'Quantity'",
        Value::Opaque(Opaque::Semver(_)) => "'Semver'",
        other => return format!("type conversion error from '{}' to 'bool'", runtime_type::name_of(other)),
    };
    format!("type conversion error from {name} to 'bool'")
}

const INCLUDES: &[Overload] = &[Overload::new(
    "dra_includes_dyn_dyn",
    "dyn.includes(dyn) -> bool",
    includes,
    "Whether an attribute is a value, or has it among its values.",
)
.costs(|_| CallEstimate::of_cost(Bounds::new(0, MOST_VALUES)), |_, _| 1)];

fn includes<'a>(context: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let [target, wanted] = args else { return Err(EvalError::NoSuchOverload) };
    let is_it = |value: &Value<'a>| value.try_equals(context.arena, wanted).unwrap_or(false);
    let Value::List(list) = target else { return Ok(Value::Bool(is_it(target))) };
    let most = usize::try_from(MOST_VALUES).unwrap_or(usize::MAX);
    match list.iter().take(most).any(|item| is_it(&item)) {
        true => Ok(Value::Bool(true)),
        false if list.len() > most => Err(EvalError::Other(
            format!("'includes' function cannot be applied to lists longer than {MOST_VALUES} values").into(),
        )),
        false => Ok(Value::Bool(false)),
    }
}

/// A device's type and language under some features.
struct Language {
    /// The type as far as sizes go: an attribute may be as long as its longest form.
    sizes: Arc<DeclType>,
    env: Env,
}

/// The environments, by the two features.
static LANGUAGES: LazyLock<[[Language; 2]; 2]> = LazyLock::new(|| {
    [false, true].map(|consumable_capacity| {
        [false, true].map(|list_attributes| {
            let features = DeviceFeatures { consumable_capacity, list_attributes };
            // Lists are walked, which `any` is not.
            let decl = Arc::new(device(features, if list_attributes { Type::Dyn } else { Type::Any }));
            let env = Env::kubernetes(Version(1, 36), Mode::New)
                .with_library(Extra::Bindings)
                .with_variable("device", decl.cel_type());
            // The signature names types of the language only.
            let env = if list_attributes { env.with_functions(INCLUDES).unwrap_or(env) } else { env };
            Language { sizes: Arc::new(device(features, Type::Any)), env }
        })
    })
});

fn language(features: DeviceFeatures) -> &'static Language {
    let [[neither, lists], [shared, both]] = &*LANGUAGES;
    match (features.consumable_capacity, features.list_attributes) {
        (false, false) => neither,
        (false, true) => lists,
        (true, false) => shared,
        (true, true) => both,
    }
}

pub(super) fn env(features: DeviceFeatures) -> &'static Env {
    &language(features).env
}

fn sizes(features: DeviceFeatures) -> Arc<DeclType> {
    Arc::clone(&language(features).sizes)
}

/// What is wrong with a selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelectorProblem {
    /// It is no expression that yields a truth value.
    Invalid(SelectorError),
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
    match Selector::compile(text, DeviceFeatures::default()) {
        Err(why) => Some(SelectorProblem::Invalid(why)),
        Ok(selector) => (selector.max_cost > SELECTOR_LIMIT).then_some(SelectorProblem::TooComplex),
    }
}

/// Declares the type of a device: its driver, and by domain its attributes and capacities.
fn device(features: DeviceFeatures, attribute: Type) -> DeclType {
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
    // The fields, in order of name.
    let mut fields = vec![
        field("attributes", by_name(sized(attribute, TEXT_LENGTH))),
        field("capacity", by_name(quantity)),
        field("driver", sized(Type::String, DRIVER_LENGTH)),
    ];
    if features.consumable_capacity {
        fields.insert(0, field("allowMultipleAllocations", sized(Type::Bool, 1)));
    }
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
            Some(SelectorProblem::Invalid(SelectorError::NoTruth("int".to_owned())))
        );
        let Some(SelectorProblem::Invalid(why)) = selector_problem("devices") else { panic!("no device") };
        assert!(
            why.to_string()
                .starts_with("compilation failed: ERROR: <input>:1:1: undeclared reference to 'devices'")
        );
        let nested = "device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, \
                      device.attributes.all(d, a == b && c == d))))";
        assert_eq!(selector_problem(nested), Some(SelectorProblem::TooComplex));
    }
}
