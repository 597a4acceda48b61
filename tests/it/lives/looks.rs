//! Whether what a first look decides is what a live look decides: beside the operator of a life somebody who
//! changes nothing looks at its Database both ways, all the time.

use std::sync::Arc;
use std::time::Duration;

use freehold::api::Database;
use freehold::cluster::mirror::Reads;
use freehold::cluster::recent;
use freehold::controller::copies::{CopiedApis, Copies};
use freehold::controller::database::{observe, of_first_look, plan};
use freehold::controller::pass::context::Context;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::house::{House, NAMESPACE};
use super::lies::Lies;
use super::life::{CALM, Plan};

/// How many first looks of a life have to stand at least, so that there was something to compare.
const LEAST: usize = 20;

/// Lives the life of this seed, in a world that does not lie, and compares.
pub async fn agree(seed: u64) {
    let life = Plan::of(seed, Lies::none());
    let mut house = House::build(seed, Lies::none()).await;
    house.start();
    let mut looker = Looker::of(&house, seed);
    tokio::select! {
        () = looker.compare(&house) => {}
        () = lived(&house, life) => {}
    }
    assert!(looker.compared >= LEAST, "{} looks were compared", looker.compared);
}

async fn lived(house: &House, life: Plan) {
    house.create(&json!({"deletionPolicy": life.policy})).await;
    house.until_ready(CALM).await;
    for (deed, details, pause) in life.deeds {
        house.chaos.tell(&format!("{deed:?}"));
        house.carry_out(deed, &mut ChaCha8Rng::seed_from_u64(details)).await;
        tokio::time::sleep(Duration::from_secs(pause.min(300))).await;
    }
    house.delete().await;
    house.until_gone(CALM).await;
}

struct Looker {
    ctx: Arc<Context>,
    copies: Arc<Copies>,
    rng: ChaCha8Rng,
    compared: usize,
    _kept: JoinSet<()>,
}

impl Looker {
    fn of(house: &House, seed: u64) -> Self {
        let ctx = Arc::new(house.looker());
        let copies = Arc::new(Copies::empty(&ctx.own_writes, None));
        let (mut kept, stop) = (JoinSet::new(), CancellationToken::new());
        freehold::operator::spawn_mirrors(&mut kept, &ctx, &stop);
        kept.spawn(Arc::clone(&copies).run(CopiedApis::of(&ctx.client, None), stop));
        Self { ctx, copies, rng: ChaCha8Rng::seed_from_u64(seed), compared: 0, _kept: kept }
    }

    async fn compare(&mut self, house: &House) {
        loop {
            let pause = [50, 500, 5000][self.rng.random_range(0..3)];
            tokio::time::sleep(Duration::from_millis(self.rng.random_range(1..pause))).await;
            if let Some(database) = house.database() {
                self.look(house, &serde_json::from_value(database).unwrap()).await;
            }
        }
    }

    /// Both looks count if nothing was written during them, which is so as a rule: they take no time.
    async fn look(&mut self, house: &House, database: &Database) {
        let Self { ctx, copies, .. } = self;
        let (now, before) = (ctx.clock.now(), house.server.revision());
        // The operator knows what it has written of them.
        for secret in house.server.objects("secrets") {
            ctx.secrets.put(&recent::key(NAMESPACE, secret["metadata"]["name"].as_str().unwrap()), None);
        }
        let first = observe::observe(database, copies, Reads::Cached, ctx).await.unwrap();
        let Some(first) = first.and_then(|seen| Some((of_first_look(&seen, now)?.0, seen.database))) else {
            return;
        };
        let live = observe::observe(database, copies, Reads::Live, ctx).await.unwrap();
        let Some(live) = live.filter(|_| house.server.revision() == before) else { return };
        assert_eq!(first.0, plan::plan(&live, now), "at {now}, of {:?}", first.1.status);
        self.compared += 1;
    }
}
