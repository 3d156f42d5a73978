//! What a simulated member tells of itself, as `collo_torch.say_hello` does.

use serde_json::{Value, json};

use super::member::Member;
use super::options::Options;
use super::{PYTHON, TORCH};

impl Member {
    pub(super) fn hello(&self, options: &Options) {
        let scenario = &self.sim.scenario;
        let wrong = |word: &str| scenario.has(word) && scenario.means_member(word, self.who.member);
        let sms = self.cap.map_or(self.places[0].sms, |cap| ((f64::from(self.places[0].sms) * cap) as u32 / 2 * 2).max(2));
        let device = match () {
            () if wrong("wrong-device") => "GPU-00000000-0000-5000-8000-000000000000",
            () if wrong("no-cuda") => "cpu",
            () => &self.places[0].uuid,
        };
        // As `as_seen` of collo_torch writes it: CUDA shows digits, those of an instance too, and the script puts `GPU-` before them.
        let seen = device.strip_prefix("MIG-").map_or_else(|| device.to_string(), |digits| format!("GPU-{digits}"));
        let sms = if wrong("wrong-sm") { sms + 2 } else { sms };
        let sms = (!wrong("no-cuda")).then_some(sms);
        let text = |name: &str, other: &str| options.0.get(name).cloned().unwrap_or_else(|| other.to_string());
        let threads = self.variables.number::<u32>("COLLO_THREADS").unwrap_or(1);
        let mut hello = json!({
            "protocol": 1,
            "pid": std::process::id(),
            "device": seen,
            "sm_count": sms,
            "memory_bytes": self.places[0].memory_bytes,
            "threads": threads,
            "versions": { "python": PYTHON, "torch": TORCH },
            "model": { "name": text("model", "simulated"), "parameters": self.workload.parameters },
            "dataset": { "name": text("dataset", "simulated"), "synthetic": true, "items": self.whole },
            "limit_batches": self.batches,
            "data_parallel": (self.places.len() > 1).then_some(self.places.len()),
            "regime": regime(options),
            "precision": text("precision", "fp32"),
            "allocator": "native",
        });
        if let (Some(serving), Some(said)) = (&self.serving, hello.as_object_mut()) {
            // There is no data set, and an epoch is as long as it is.
            said.remove("dataset");
            said.remove("limit_batches");
            said.insert("serving".into(), serving.hello());
        }
        if let (Some(hosted), Some(said)) = (&self.hosted, hello.as_object_mut()) {
            let stream = sms.map(|_| hosted.stream);
            said.insert("thread".into(), json!({ "id": hosted.thread, "lock": hosted.lock, "stream": stream }));
        }
        if self.channel.by_hand() {
            println!("simulated; device {device}, {} SMs, {} items an epoch", sms.unwrap_or(0), self.items);
        }
        self.channel.say("hello", hello);
    }
}

/// What a hello tells of the regime, as workloads/collo_torch.py does: of the settings that were given.
fn regime(options: &Options) -> serde_json::Map<String, Value> {
    const NAMES: [&str; 14] = [
        "recipe",
        "precision",
        "read_loss",
        "workers",
        "keep_cache",
        "augmentation",
        "crop",
        "validate",
        "optimiser",
        "nesterov",
        "weight_decay",
        "label_smoothing",
        "schedule",
        "schedule_epochs",
    ];
    let typed = |text: &String| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.as_str()));
    NAMES.into_iter().filter_map(|name| Some((name.to_string(), typed(options.0.get(name)?)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_regime_is_that_of_the_settings_and_of_no_others() {
        let words =
            ["--model=resnet26", "--recipe=timm", "--precision=tf32", "--workers=4", "--validate=true", "--weight-decay=0.00002"];
        let told = regime(&Options::read(&words.map(str::to_string)));
        let expected = json!({ "recipe": "timm", "precision": "tf32", "workers": 4, "validate": true, "weight_decay": 2e-5 });
        assert_eq!(Value::Object(told), expected);
    }
}
