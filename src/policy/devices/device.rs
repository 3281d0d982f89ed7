//! Represents a device of a ResourceSlice as expressions see it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::LazyLock;

use admit_cel::{Bindings, Env, EvalError, Evaluation, HostMap, List, Map, Mode, Program, Value, Version};
use bumpalo::Bump;
use serde_json::Value as Json;

use super::error::{DeviceError, MemberError};
use super::features::DeviceFeatures;
use crate::read::decode::{Fields, FieldsError, wrong};

/// A device of a pool.
///
/// ```
/// use admit_policy::Device;
/// use serde_json::json;
///
/// let device = Device::read("gpu.example.com", "node-1", &json!({"name": "gpu-0", "capacity": {"memory": {"value": "40Gi"}}}))?;
/// assert_eq!(device.to_string(), "gpu.example.com/node-1/gpu-0");
/// # Ok::<(), admit_policy::FieldsError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    pub driver: String,
    pub pool: String,
    pub name: String,
    /// Whether several requests may have a part of it.
    pub allow_multiple_allocations: bool,
    attributes: Members<Attribute>,
    /// Capacities, as written.
    capacity: Members<String>,
}

#[derive(Clone, Debug, PartialEq)]
enum Attribute {
    Bool(bool),
    Int(i64),
    Text(String),
    Version(String),
    Bools(Vec<bool>),
    Ints(Vec<i64>),
    Texts(Vec<String>),
    Versions(Vec<String>),
    /// A kind that is not known.
    Other,
}

impl fmt::Display for Device {
    /// Formats it as the scheduler does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.driver, self.pool, self.name)
    }
}

impl Device {
    /// Reads a device of a slice; older versions have its parts in `basic`.
    ///
    /// # Errors
    /// The first field of a wrong type.
    pub fn read(driver: &str, pool: &str, device: &Json) -> Result<Self, FieldsError> {
        Self::decode(driver, pool, &Fields::of(device, "")?)
    }

    pub(super) fn decode(driver: &str, pool: &str, fields: &Fields<'_>) -> Result<Self, FieldsError> {
        let parts = fields.optional_object("basic")?.unwrap_or_else(|| fields.clone());
        let (of_attributes, of_capacity) = (parts.object("attributes")?, parts.object("capacity")?);
        let mut attributes = BTreeMap::new();
        for name in of_attributes.keys() {
            attributes.insert(name.clone(), Attribute::read(&of_attributes.object(name)?)?);
        }
        let mut capacity = BTreeMap::new();
        for name in of_capacity.keys() {
            // A quantity alone in the first versions.
            let amount = match of_capacity.get(name) {
                Some(Json::Object(_)) => of_capacity.object(name)?.get("value"),
                other => other,
            };
            let amount = match amount {
                Some(Json::String(text)) => text.clone(),
                Some(Json::Number(number)) => number.to_string(),
                _ => return Err(wrong(of_capacity.path_of(name), "must have a `value`, such as 40Gi")),
            };
            capacity.insert(name.clone(), amount);
        }
        Ok(Self {
            driver: driver.to_owned(),
            pool: pool.to_owned(),
            name: fields.string("name")?,
            allow_multiple_allocations: parts.bool("allowMultipleAllocations")?,
            attributes: Members::new(attributes, driver),
            capacity: Members::new(capacity, driver),
        })
    }

    /// The value of the variable `device`, or which attribute has none.
    pub(super) fn members<'a>(
        &'a self,
        arena: &'a Bump,
        features: DeviceFeatures,
    ) -> Result<Value<'a>, DeviceError> {
        let attributes =
            self.attributes.value(arena, &self.driver, |attribute| attribute.value(arena, features));
        let amount = |text: &'a String| parsed(&QUANTITY, arena, text).map_err(MemberError::Quantity);
        let capacity = self.capacity.value(arena, &self.driver, amount);
        let no_attribute = |(name, error)| DeviceError::Attribute { name, error };
        let no_capacity = |(name, error)| DeviceError::Capacity { name, error };
        let members = [
            (Value::String("driver"), Value::String(&self.driver)),
            (Value::String("allowMultipleAllocations"), Value::Bool(self.allow_multiple_allocations)),
            (Value::String("attributes"), attributes.map_err(no_attribute)?),
            (Value::String("capacity"), capacity.map_err(no_capacity)?),
        ];
        Ok(Value::Map(Map::Values(arena.alloc_slice_copy(&members))))
    }
}

impl Attribute {
    fn read(fields: &Fields<'_>) -> Result<Self, FieldsError> {
        let list = |key: &str| fields.get(key).and_then(Json::as_array);
        let is_not = |key: &str, what: &str| wrong(fields.path_of(key), format!("must be {what}"));
        Ok(if let Some(items) = list("ints") {
            let ints = items.iter().map(Json::as_i64).collect::<Option<_>>();
            Self::Ints(ints.ok_or_else(|| is_not("ints", "a list of integers"))?)
        } else if let Some(items) = list("bools") {
            let bools = items.iter().map(Json::as_bool).collect::<Option<_>>();
            Self::Bools(bools.ok_or_else(|| is_not("bools", "a list of booleans"))?)
        } else if list("strings").is_some() {
            Self::Texts(fields.strings("strings")?)
        } else if list("versions").is_some() {
            Self::Versions(fields.strings("versions")?)
        } else if let Some(int) = fields.optional_integer("int")? {
            Self::Int(int)
        } else if fields.get("bool").is_some() {
            Self::Bool(fields.bool("bool")?)
        } else if let Some(text) = fields.optional_string("string")? {
            Self::Text(text)
        } else if let Some(version) = fields.optional_string("version")? {
            Self::Version(version)
        } else {
            Self::Other
        })
    }

    fn value<'a>(&'a self, arena: &'a Bump, features: DeviceFeatures) -> Result<Value<'a>, MemberError> {
        let version = |text: &'a str| parsed(&SEMVER, arena, text).map_err(MemberError::Version);
        let list = |values: Vec<Value<'a>>| Value::List(List::Values(arena.alloc_slice_copy(&values)));
        match self {
            Self::Bool(value) => Ok(Value::Bool(*value)),
            Self::Int(value) => Ok(Value::Int(*value)),
            Self::Text(text) => Ok(Value::String(text)),
            Self::Version(text) => version(text),
            Self::Bools(values) if features.list_attributes => {
                Ok(list(values.iter().map(|value| Value::Bool(*value)).collect()))
            }
            Self::Ints(values) if features.list_attributes => {
                Ok(list(values.iter().map(|value| Value::Int(*value)).collect()))
            }
            Self::Texts(texts) if features.list_attributes => {
                Ok(list(texts.iter().map(|text| Value::String(text)).collect()))
            }
            Self::Versions(texts) if features.list_attributes => {
                texts.iter().map(|text| version(text)).collect::<Result<_, _>>().map(list)
            }
            Self::Bools(_) | Self::Ints(_) | Self::Texts(_) | Self::Versions(_) | Self::Other => {
                Err(MemberError::Unsupported)
            }
        }
    }
}

static QUANTITY: LazyLock<Option<Program>> = LazyLock::new(|| reader("quantity(text)"));
static SEMVER: LazyLock<Option<Program>> = LazyLock::new(|| reader("semver(text)"));

/// Compiles a function that parses a string.
fn reader(call: &str) -> Option<Program> {
    let env = Env::kubernetes(Version(1, 36), Mode::New).with_variable("text", admit_cel::Type::String);
    env.program(&env.compile(call).ok()?).ok()
}

fn parsed<'a>(
    reader: &'static Option<Program>,
    arena: &'a Bump,
    text: &'a str,
) -> Result<Value<'a>, EvalError> {
    let Some(program) = reader else { return Err(EvalError::NoSuchOverload) };
    let mut bindings = Bindings::new(program);
    bindings.set("text", Value::String(text));
    program.eval(&bindings, &mut Evaluation::new(arena))
}

/// Attributes or capacities: by name as written, and the existing domains.
#[derive(Clone, Debug, PartialEq)]
struct Members<T> {
    by_name: BTreeMap<String, T>,
    domains: Box<[Box<str>]>,
}

impl<T> Members<T> {
    /// A name without a domain is in that of the driver.
    fn new(by_name: BTreeMap<String, T>, driver: &str) -> Self {
        let domains: BTreeSet<&str> = by_name.keys().map(|name| place(name, driver).0).collect();
        let domains = domains.into_iter().map(Into::into).collect();
        Self { by_name, domains }
    }

    /// Returns the map of domains; or the member without a valid value, and why.
    fn value<'a>(
        &'a self,
        arena: &'a Bump,
        driver: &'a str,
        of: impl Fn(&'a T) -> Result<Value<'a>, MemberError>,
    ) -> Result<Value<'a>, (String, MemberError)> {
        let mut members: BTreeMap<&str, Vec<(Value<'a>, Value<'a>)>> = BTreeMap::new();
        for (name, member) in &self.by_name {
            let value = of(member).map_err(|error| (name.clone(), error))?;
            let (domain, name) = place(name, driver);
            members.entry(domain).or_default().push((Value::String(name), value));
        }
        let maps: Vec<Value<'a>> = members
            .into_values()
            .map(|members| Value::Map(Map::Values(arena.alloc_slice_copy(&members))))
            .collect();
        let domains = ByDomain { names: &self.domains, maps: arena.alloc_slice_copy(&maps) };
        Ok(Value::Map(Map::Host(arena.alloc(domains))))
    }
}

/// The domain, and the name in it.
fn place<'n>(name: &'n str, driver: &'n str) -> (&'n str, &'n str) {
    name.split_once('/').unwrap_or((driver, name))
}

/// What a device has, by domain; of one that it has nothing of that is an empty map.
#[derive(Debug)]
struct ByDomain<'a> {
    /// Sorted.
    names: &'a [Box<str>],
    maps: &'a [Value<'a>],
}

impl ByDomain<'_> {
    fn position(&self, domain: &str) -> Option<usize> {
        self.names.binary_search_by(|known| (**known).cmp(domain)).ok()
    }
}

impl HostMap for ByDomain<'_> {
    fn find<'b>(&'b self, domain: &str) -> Option<Result<Value<'b>, EvalError>> {
        let found = self.position(domain).and_then(|at| self.maps.get(at));
        Some(Ok(found.copied().unwrap_or(Value::Map(Map::EMPTY))))
    }

    fn names(&self) -> &[Box<str>] {
        self.names
    }

    fn holds(&self, domain: &str) -> Result<bool, EvalError> {
        Ok(self.position(domain).is_some())
    }
}
