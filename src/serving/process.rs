//! Tells what the process uses, under the names that all Prometheus clients have: processor time, memory and file descriptors.

use std::fmt;
use std::fs;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// In which the kernel tells times to programs, on all architectures that Rust has a standard library for.
const TICKS_PER_SECOND: f64 = 100.0;

/// Collects the figures of this process when they are asked for. Where there is no `/proc`, there are none.
///
/// ```
/// use prometheus_client::encoding::text::encode;
/// use prometheus_client::registry::Registry;
///
/// let mut registry = Registry::default();
/// registry.register_collector(Box::new(admit_serving::Process));
/// let mut text = String::new();
/// encode(&mut text, &registry).unwrap();
/// # #[cfg(target_os = "linux")]
/// assert!(text.contains("process_resident_memory_bytes "));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let Some(figures) = Figures::read() else { return Ok(()) };
        let cpu = ConstCounter::new(figures.cpu_seconds);
        let told = encoder.encode_descriptor(
            "process_cpu_seconds",
            "Processor time used",
            None,
            cpu.metric_type(),
        )?;
        cpu.encode(told)?;
        for (name, help, value) in [
            ("process_max_fds", "File descriptors that may be open", figures.max_fds),
            ("process_open_fds", "File descriptors that are open", figures.open_fds),
            ("process_resident_memory_bytes", "Memory that is resident", figures.resident),
            ("process_start_time_seconds", "When the process began, in seconds since 1970", figures.began),
            ("process_virtual_memory_bytes", "Memory that is mapped", figures.mapped),
        ] {
            let Some(value) = value else { continue };
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Figures {
    cpu_seconds: f64,
    max_fds: Option<f64>,
    open_fds: Option<f64>,
    resident: Option<f64>,
    mapped: Option<f64>,
    began: Option<f64>,
}

impl Figures {
    fn read() -> Option<Self> {
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        // The name, which may contain anything, ends with the last bracket.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks = |field: usize| fields.get(field)?.parse::<f64>().ok();
        let (user, system, began) = (ticks(11)?, ticks(12)?, ticks(19));
        let booted = fs::read_to_string("/proc/stat").ok();
        let booted = booted.and_then(|text| number(&text, "btime "));
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let bytes = |field| number(&status, field).map(|kilobytes| kilobytes * 1024.0);
        let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
        let open = fs::read_dir("/proc/self/fd").ok();
        Some(Self {
            cpu_seconds: (user + system) / TICKS_PER_SECOND,
            max_fds: number(&limits, "Max open files "),
            // One of them reads the folder.
            open_fds: open.map(|open| open.count().saturating_sub(1) as f64),
            resident: bytes("VmRSS:"),
            mapped: bytes("VmSize:"),
            began: booted.zip(began).map(|(booted, began)| booted + began / TICKS_PER_SECOND),
        })
    }
}

/// Returns the first number behind `name`, which begins a line.
fn number(text: &str, name: &str) -> Option<f64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_this_process() {
        let figures = Figures::read().unwrap();
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
        let began = figures.began.unwrap();
        assert!(began > now - 24.0 * 3600.0 && began < now + 60.0, "{figures:?} {now}");
        let (resident, mapped) = (figures.resident.unwrap(), figures.mapped.unwrap());
        assert!(resident > 100_000.0 && resident < mapped, "{figures:?}");
        let held = fs::File::open("/proc/self/stat").unwrap();
        // Other tests open files, too.
        assert!(Figures::read().unwrap().open_fds.unwrap() >= 4.0, "{held:?}");
        assert!(figures.max_fds.unwrap() >= figures.open_fds.unwrap());
        assert!(figures.cpu_seconds >= 0.0);
    }
}
