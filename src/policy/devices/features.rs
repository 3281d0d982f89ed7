//! Lists the feature gates of servers and schedulers that affect selectors.

/// Gates of the server that change what selectors may use.
///
/// ```
/// use admit_policy::{DeviceFeatures, Selector};
///
/// let text = "device.attributes['gpu.example.com'].modes.includes('mig')";
/// assert!(Selector::compile(text, DeviceFeatures::default()).is_err(), "off in this release");
/// assert!(Selector::compile(text, DeviceFeatures { list_attributes: true, ..DeviceFeatures::default() }).is_ok());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceFeatures {
    /// `DRAConsumableCapacity`: `device.allowMultipleAllocations`.
    pub consumable_capacity: bool,
    /// `DRAListTypeAttributes`: attributes that are lists, and `includes`.
    pub list_attributes: bool,
}

impl Default for DeviceFeatures {
    /// Returns the gates of Kubernetes 1.36.
    fn default() -> Self {
        Self { consumable_capacity: true, list_attributes: false }
    }
}
