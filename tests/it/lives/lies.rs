//! How much is wrong with the world of a life, as its seed draws it.

use std::time::Duration;

use ec2sim::Visibility;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::blow::Strike;

/// How much is wrong with the world: each figure is a probability for one request, unless it says otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Lies {
    /// A request to the API server is refused, lost, or its answer is.
    pub api: f64,
    /// A call to EC2 is refused, lost, late, or its answer is lost.
    pub ec2: f64,
    /// An operator is struck at a write: killed, stopped, or cut off.
    pub blows: f64,
    /// How often the watches are disturbed, in times an hour.
    pub watches: f64,
    /// How late EC2 shows what is new.
    pub visibility: Visibility,
    /// A read of EC2 is answered as it would have been: by each of three ages.
    pub stale: f64,
    /// The tags of instances that have ended vanish.
    pub tags_vanish: bool,
    /// An operator is struck once, here.
    pub strike: Option<Strike>,
}

impl Lies {
    /// A world as one would wish it.
    pub fn none() -> Self {
        let visibility = Visibility::default();
        Self {
            api: 0.0,
            ec2: 0.0,
            blows: 0.0,
            watches: 0.0,
            visibility,
            stale: 0.0,
            tags_vanish: false,
            strike: None,
        }
    }

    /// What a seed draws: each kind of lie is absent in some seeds and common in others.
    pub fn of(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x11e5);
        let mut one_of = |values: &[f64]| values[rng.random_range(0..values.len())];
        let (api, ec2) = (one_of(&[0.0, 0.01, 0.05, 0.15]), one_of(&[0.0, 0.02, 0.1, 0.25]));
        let (blows, watches) = (one_of(&[0.0, 0.01, 0.05, 0.1]), one_of(&[0.0, 5.0, 60.0]));
        let mut lag = |most: u64| Duration::from_secs([0, 0, 2, most][rng.random_range(0..4)]);
        let visibility = Visibility { by_id: lag(10), by_filter: lag(60), tags: lag(120) };
        let stale = [0.0, 0.02, 0.1][rng.random_range(0..3)];
        let tags_vanish = rng.random_bool(0.7);
        Self { api, ec2, blows, watches, visibility, stale, tags_vanish, strike: None }
    }

    /// The same with one kind of lie less.
    pub fn fewer(self) -> Vec<Self> {
        let none = Self::none();
        let all = [
            (self.api > 0.0, Self { api: 0.0, ..self }),
            (self.ec2 > 0.0, Self { ec2: 0.0, ..self }),
            (self.blows > 0.0, Self { blows: 0.0, ..self }),
            (self.watches > 0.0, Self { watches: 0.0, ..self }),
            (self.visibility != none.visibility, Self { visibility: none.visibility, ..self }),
            (self.stale > 0.0, Self { stale: 0.0, ..self }),
            (self.tags_vanish, Self { tags_vanish: false, ..self }),
        ];
        all.into_iter().filter(|(is_there, _)| *is_there).map(|(_, fewer)| fewer).collect()
    }
}
