//! What `admit up` keeps: names as they are, files for their owner alone, and no damage taken for data.

mod disk;
mod elsewhere;
mod names;
