/// What the program counts besides its broker.
struct ProgramNumbers: Hashable {
  var droppedLogLines = 0

  func write(to text: inout MetricsText) {
    text.family(
      "sluice_log_dropped_lines", .counter,
      "Lines that were left out of the log because nobody read it in time.")
    text.sample(UInt64(droppedLogLines))
  }
}
