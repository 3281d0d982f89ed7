//! Patterns that are large when they are compiled: one that is too large by itself, and many that are so together.

use memory::cluster::{ADMISSION_POLICIES, Cluster, DEFINITIONS};
use memory::{bodies, growth, readers};

use crate::Seen;

pub(crate) fn of_patterns(seen: &mut Seen) {
    for (first, count) in [(0, 1), (1, 40)] {
        for (name, body) in bodies::patterns(first, count) {
            let path = if name == "a policy" { ADMISSION_POLICIES } else { DEFINITIONS };
            let (cluster, body) = (Cluster::new().unwrap(), body.to_string());
            let length = body.len();
            let (grown, (code, answer)) =
                growth(|| cluster.send("POST", path, "application/json", body.clone().into()));
            seen.note(&format!("{count} patterns of {name}, {code}"), length, grown);
            assert_eq!(code, 422, "{count} of {name}: {}", String::from_utf8_lossy(&answer));
            let (grown, ()) = growth(|| readers::policies(body.as_bytes()));
            seen.note(&format!("{count} patterns of {name} in a file"), length, grown);
        }
    }
}
