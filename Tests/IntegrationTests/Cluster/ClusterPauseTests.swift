import Testing

@Suite("what is told of pauses of a cluster")
struct ClusterPauseTests {
  private func pause(
    _ publishing: Double, _ delivering: Double, _ relaying: Double, afterCut: Double? = nil
  ) -> ClusterPause {
    var pause = ClusterPause(.first)
    pause.goesOn(.publishing, after: publishing)
    pause.goesOn(.delivering, after: delivering)
    pause.goesOn(.relaying, after: relaying, afterCut: afterCut)
    return pause
  }

  @Test("one loss: each way of a record by itself, the first time counts")
  func one() {
    var pause = ClusterPause(.first)
    #expect(pause.missing == [.publishing, .delivering, .relaying])
    pause.goesOn(.delivering, after: 2.1004)
    pause.goesOn(.delivering, after: 9)
    #expect(pause.missing == [.publishing, .relaying])
    #expect(pause.description == "all topics go on after: delivering 2100 ms")
    pause.goesOn(.relaying, after: 7, afterCut: 0.9996)
    pause.goesOn(.publishing, after: 0.0126)
    #expect(pause.missing == [])
    #expect(
      pause.description
        == "all topics go on after: publishing 13 ms; delivering 2100 ms; relaying 7000 ms, 1000 ms after the cut's end"
    )
  }

  @Test("several losses: medians, the upper one of two, and maxima")
  func several() {
    #expect(
      ClusterPause.summary(of: [pause(0.3, 1, 5), pause(0.1, 3, 4), pause(0.2, 2, 6)])
        == "3 times, all topics go on after: publishing median 200 ms, longest 300 ms; delivering median 2000 ms, longest 3000 ms; relaying median 5000 ms, longest 6000 ms"
    )
    #expect(
      ClusterPause.summary(of: [pause(1, 1, 1), pause(2, 2, 2)])
        == "2 times, all topics go on after: publishing median 2000 ms, longest 2000 ms; delivering median 2000 ms, longest 2000 ms; relaying median 2000 ms, longest 2000 ms"
    )
  }

  @Test("the end of a cut is told where topics waited for it, and only of those losses")
  func cut() {
    let summary = ClusterPause.summary(of: [
      pause(1, 1, 1), pause(1, 1, 8, afterCut: 2), pause(1, 1, 7, afterCut: 1),
    ])
    #expect(
      summary
        == "3 times, all topics go on after: publishing median 1000 ms, longest 1000 ms; delivering median 1000 ms, longest 1000 ms; relaying median 7000 ms, longest 8000 ms (from the cut's end, where topics waited for it: 2 times, median 2000 ms, longest 2000 ms)"
    )
  }

  @Test("the replacement of several processes counts with its longest pause, each way by itself")
  func replacement() {
    var all = ClusterPause(.gaps)
    all.extend(by: pause(1, 5, 2))
    all.extend(by: pause(3, 4, 2, afterCut: 1))
    #expect(all.taken == [.publishing: 3, .delivering: 5, .relaying: 2])
    #expect(all.afterCut == [.relaying: 1])
    #expect(
      ClusterPause.summary(of: [all]).hasPrefix(
        "1 times, longest time without a record of one producer: publishing median 3000 ms, longest 3000 ms;")
    )
  }

  @Test("of what is planned, the pauses of the topics that moved are told beside the longest of all")
  func moved() {
    var first = ClusterPause(.gaps)
    first.goesOn(.publishing, after: 0.3)
    first.moved(.publishing, after: 0.3)
    first.moved(.publishing, after: 0.1)
    #expect(
      first.description
        == "longest time without a record of one producer: publishing 300 ms (2 topics that moved: median 300 ms, longest 300 ms)"
    )
    var second = ClusterPause(.gaps)
    second.goesOn(.publishing, after: 0.2)
    second.moved(.publishing, after: 0.11)
    let summary =
      "longest time without a record of one producer: publishing median 300 ms, longest 300 ms (3 topics that moved: median 110 ms, longest 300 ms)"
    #expect(ClusterPause.summary(of: [first, second]) == "2 times, \(summary)")
    first.extend(by: second)
    #expect(ClusterPause.summary(of: [first]) == "1 times, \(summary)")
  }

  @Test("a gap is what is longest without a record, also the one that still lasts")
  func gaps() {
    let start = ContinuousClock.now
    func at(_ milliseconds: Int) -> ContinuousClock.Instant { start + .milliseconds(milliseconds) }
    var arrivals = ClusterArrivals()
    #expect(arrivals.longestGap(at: at(9)) == 0)
    arrivals.arrive(7, at: at(0))
    arrivals.arrive(8, at: at(500))
    #expect(arrivals.longestGap(at: at(600)) == 0.5)
    arrivals.restart(at: at(600))
    arrivals.arrive(9, at: at(650))
    arrivals.arrive(10, at: at(750))
    #expect(arrivals.longestGap(at: at(760)) == 0.1)
    #expect(arrivals.longestGap(at: at(1000)) == 0.25)
    // A repeated sequence, as after a reconnection, changes nothing.
    arrivals.arrive(3, at: at(760))
    #expect(arrivals.next == 11)
  }
}
