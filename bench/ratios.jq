# From all runs' measures: each value's mean over the repeats with its 95 % interval, and foxy's ratios to the others,
# taken within each repeat.

def student: [0, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262][.] // 2;

def summary:
  length as $count | (add / $count) as $mean
  | (if $count < 2 then 0
     else (map((. - $mean) * (. - $mean)) | add / ($count - 1) | sqrt) * ($count - 1 | student) / ($count | sqrt) end) as $half
  | {value: $mean, low: ($mean - $half), high: ($mean + $half), repeats: $count};

def measure($name; $subject; $unit; $workload):
  {kind: "measure", name: $name, subject: $subject} + summary + {unit: $unit, workload: $workload};

map(select(.kind == "measure"))
| (group_by([.workload, .subject, .name])[]
   | .[0] as $first | map(.value) | measure($first.name; $first.subject; $first.unit; $first.workload)),
  (map(select(.name == "cpu_us_per_request" or .name == "requests_per_second"))
   | group_by([.workload, .name])[]
   | . as $runs | .[0] as $first
   | ("squid", "nginx") as $peer
   | [$runs[] | select(.subject == "foxy") | . as $ours
      | $runs[] | select(.subject == $peer and .repeat == $ours.repeat and .value > 0) | $ours.value / .value]
   | select(length > 0)
   | measure("\($first.name)_ratio_to_\($peer)"; "foxy"; "ratio"; $first.workload))
