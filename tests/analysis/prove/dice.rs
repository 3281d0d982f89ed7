//! Dice for random rules and objects.

/// Numbers that look random and are the same in every run (xorshift).
pub(super) struct Dice(u64);

impl Dice {
    /// Others in a run with an `ADMIT_SEED`.
    pub(super) fn new() -> Self {
        Self::of(std::env::var("ADMIT_SEED").ok().and_then(|seed| seed.parse::<u64>().ok()).unwrap_or(0))
    }

    pub(super) fn of(seed: u64) -> Self {
        Self(0x9E37_79B9_7F4A_7C15 ^ seed.wrapping_mul(0x2545_F491_4F6C_DD1D))
    }

    pub(super) fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(sides).expect("few sides")).expect("fits")
    }

    pub(super) fn pick<'t>(&mut self, all: &[&'t str]) -> &'t str {
        all[self.roll(all.len())]
    }
}
