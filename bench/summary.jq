# From records.jsonl: a table for each workload, for people.

def digits($count): (if $count == 0 then 1 elif $count == 1 then 10 elif $count == 2 then 100 else 1000 end) as $scale
  | (. * $scale | round) / $scale | tostring;
def shown($count): if . == null then "–"
  elif .repeats > 1 and .high != .low then "\(.value | digits($count)) (\([.low, 0] | max | digits($count))–\(.high | digits($count)))"
  else .value | digits($count) end;

map(select(.kind == "measure" and (.repeat | not))) as $measures
| def of($workload; $subject; $name):
    first($measures[] | select(.workload == $workload and .subject == $subject and .name == $name)) // null;
  "# foxy beside Squid and nginx", "",
  "Means over the repeats, with 95 % intervals; compare within a table. bench/README.md says what each column is.",
  (["memory-hit", "disk-hit", "fill"][] as $workload
   | ([$measures[] | select(.workload == $workload) | .subject] | unique) as $subjects
   | select($subjects | length > 0)
   | "", "## \($workload)", "",
     "| Proxy | CPU µs/request | requests/s | p99 µs | hit ratio | wrong bytes | errors |"
       + (if $workload == "memory-hit" then " system calls/request |"
          elif $workload == "fill" then " newest that are hits | MB on disk |" else "" end),
     "|---|---|---|---|---|---|---|"
       + (if $workload == "memory-hit" then "---|" elif $workload == "fill" then "---|---|" else "" end),
     (("foxy", "squid", "nginx") as $subject | select($subjects | index($subject))
      | "| \($subject) | \(of($workload; $subject; "cpu_us_per_request") | shown(1)) "
        + "| \(of($workload; $subject; "requests_per_second") | shown(0)) "
        + "| \(of($workload; $subject; "latency_p99_us") | shown(0)) "
        + "| \(of($workload; $subject; "hit_ratio") | shown(3)) "
        + "| \(of($workload; $subject; "wrong_bytes") | shown(0)) "
        + "| \(of($workload; $subject; "errors") | shown(0)) |"
        + (if $workload == "memory-hit" then " \(of($workload; $subject; "system_calls_per_request") | shown(2)) |"
           elif $workload == "fill" then " \(of($workload; $subject; "resident_after_fill") | shown(3)) "
             + "| \(of($workload; $subject; "size_on_disk_bytes")
                    | if . then .value /= 1000000 | .low /= 1000000 | .high /= 1000000 else . end | shown(0)) |"
           else "" end)),
     "",
     ([("squid", "nginx") as $peer
       | of($workload; "foxy"; "cpu_us_per_request_ratio_to_\($peer)") as $cpu | select($cpu)
       | "foxy takes \($cpu | shown(2)) × the CPU of \($peer) and answers "
         + "\(of($workload; "foxy"; "requests_per_second_ratio_to_\($peer)") | shown(2)) × as many requests."]
      | join("\n")))
