//! Definitions, and patterns that are large when they are compiled: one that is too large by itself, and many that are so
//! together.

use memory::cluster::{ADMISSION_POLICIES, Cluster, DEFINITIONS};
use memory::{bodies, definitions, growth, readers};

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

/// Bytes of definitions. One of 1 MiB that is nothing but 35,000 properties takes 90 MiB, eight hundredths past the limit:
/// what a node of a schema takes has to shrink before this can grow.
const SIZES: [usize; 2] = [100 << 10, 768 << 10];

/// Definitions that are stored and served: what is made of their schemas grows with the bytes.
pub(crate) fn of_definitions(seen: &mut Seen) {
    let sized = SIZES.into_iter().flat_map(definitions::definitions);
    for (name, body) in sized.chain(definitions::wide(60, 10_000)) {
        let (cluster, body) = (Cluster::new().unwrap(), body.to_string());
        let length = body.len();
        let (grown, (code, answer)) =
            growth(|| cluster.send("POST", DEFINITIONS, "application/json", body.into()));
        seen.note(&format!("a definition of many {name}, {code}"), length, grown);
        if length < 200 << 10 {
            assert_eq!(code, 201, "{name}: {}", String::from_utf8_lossy(&answer));
        }
        for document in ["/openapi/v2", "/openapi/v3/apis/e.x/v1"] {
            let (grown, _) = growth(|| cluster.send("GET", document, "application/json", Vec::new().into()));
            seen.note(&format!("{document} after a definition of many {name}"), length, grown);
        }
    }
}
