//! Finds free ports for servers that cannot choose one themselves.

use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};

/// The range, below all ephemeral ports of Linux (`ip_local_port_range` begins at 32768): an ephemeral port may be taken by
/// an outgoing connection or another server before the server listens on it.
const PORTS: Range<u16> = 12_000..32_000;
/// The number of ports of one test program: it keeps the first one bound while it runs, which reserves the block.
const BLOCK: u16 = 100;

struct Block {
    _held: TcpListener,
    first: u16,
    next: AtomicU16,
}

/// Returns a free port of 127.0.0.1 that no other caller gets; ports repeat after 99 calls. None if all of them
/// are in use, or 200 programs run.
#[must_use]
pub fn free_port() -> Option<u16> {
    static OURS: OnceLock<Option<Block>> = OnceLock::new();
    let block = OURS.get_or_init(Block::claim).as_ref()?;
    let mut ports =
        (1..BLOCK).map(|_| block.first + 1 + block.next.fetch_add(1, Ordering::Relaxed) % (BLOCK - 1));
    ports.find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
}

impl Block {
    fn claim() -> Option<Self> {
        PORTS.step_by(usize::from(BLOCK)).find_map(|first| {
            let held = TcpListener::bind((Ipv4Addr::LOCALHOST, first)).ok()?;
            Some(Self { _held: held, first, next: AtomicU16::new(0) })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_free_and_given_once() {
        let ports: Vec<u16> = (0..10).map(|_| free_port().unwrap()).collect();
        assert!(ports.is_sorted_by(|one, next| one < next), "{ports:?}");
        for port in ports {
            assert!(TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok());
            assert!(PORTS.contains(&port));
        }
    }

    #[test]
    fn another_program_gets_another_block() {
        let (one, other) = (Block::claim().unwrap(), Block::claim().unwrap());
        assert_ne!(one.first, other.first);
    }
}
