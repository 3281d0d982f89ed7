//! Size algebra and the static estimate. The meter that runs beside an evaluation belongs to [`crate::eval`].

/// Bounds of a cost or a size; arithmetic on both ends saturates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub min: u64,
    pub max: u64,
}

impl Bounds {
    pub const ZERO: Self = Self { min: 0, max: 0 };
    pub const ONE: Self = Self { min: 1, max: 1 };
    pub const UNBOUNDED: Self = Self { min: 0, max: u64::MAX };

    #[must_use]
    pub const fn exactly(n: u64) -> Self {
        Self { min: n, max: n }
    }
}

/// What the estimator knows of one argument of a call.
#[derive(Clone, Copy, Debug)]
pub struct Operand<'t> {
    /// Items, entries, code points or bytes; a scalar without extent has [`Bounds::ONE`].
    pub size: Bounds,
    pub ty: &'t crate::types::Type,
}

/// What a row of the library says of a call: what it costs beyond its arguments, and how large its result is.
#[derive(Clone, Copy, Debug)]
pub struct CallEstimate {
    pub cost: Bounds,
    pub result_size: Option<Bounds>,
}
