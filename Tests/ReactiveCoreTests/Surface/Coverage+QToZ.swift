extension Coverage {
  /// Operators from Q to Z.
  static let operatorsQToZ: [Coverage] = [
    Coverage(
      "receive(on:options:)", in: "ReceiveOnTests",
      [
        "deliversOnTheScheduler": [.normal, .demand, .finish],
        "passesReturnedDemandUpstream": [.normal, .demand],
        "whatComesDuringAHopWaitsForTheNext": [.normal, .reentrancy],
        "cancellationDropsWhatWaits": [.normal, .demand, .finish, .cancel, .reentrancy],
        "ignoresWhatComesAfterTheEnd": [.finish, .failure, .cancel],
        "anImmediateSchedulerNeedsNoMoreStackForAMillionValues": .cancel,
        "releasesEverything": [.finish, .failure, .cancel, .lifecycle],
      ]),
    Coverage(
      "reduce(_:_:)", in: "ReduceTests",
      [
        "combinesAllValues": .reduction,
        "startsAnewForEachSubscriber": [.normal, .immediate],
      ]),
    Coverage(
      "removeDuplicates()", in: "RemoveDuplicatesTests",
      [
        "isOrderly": [.orderly, .reentrant],
        "dropsWhatEqualsTheValueBefore": [.orderly, .normal],
        "comparesWithTheLastValuePassedOn": [.normal, .demand],
      ]),
    Coverage(
      "removeDuplicates(by:)", in: "RemoveDuplicatesTests",
      [
        "isOrderly": [.orderly, .reentrant],
        "dropsWhatEqualsTheValueBefore": [.orderly, .normal],
        "comparesWithTheLastValuePassedOn": [.normal, .demand],
      ]),
    Coverage(
      "replaceNil(with:)", in: "ReplaceNilTests",
      [
        "replacesNil": [.normal, .demand, .failure],
        "cancellationAndFinishPass": [.demand, .finish, .cancel],
        "releasesEverything": [.finish, .failure, .cancel, .lifecycle],
      ]),
    Coverage(
      "scan(_:_:)", in: "ScanTests",
      [
        "passesOnTheRunningResult": [.normal, .demand, .failure],
        "leavesTheSubscriptionAsItIs": [.demand, .finish, .cancel],
        "startsAnewForEachSubscriber": [.normal, .immediate],
        "cancellingFromWithinAValueReachesTheSource": [.normal, .demand, .cancel, .reentrancy],
        "releasesEverything": [.finish, .failure, .cancel, .lifecycle],
      ]),
    Coverage(
      "setFailureType(to:)", in: "SetFailureTypeTests", except: [.failure: "upstream cannot fail"],
      [
        "passesEverythingOn": [.normal, .demand, .finish, .immediate],
        "cancellationReachesTheSource": [.demand, .cancel],
        "releasesEverything": [.finish, .cancel, .lifecycle],
      ]),
    Coverage(
      "share()", in: "ShareTests",
      [
        "subscribesUpstreamOnce": [.normal, .demand, .failure],
        "isEqualToItselfAlone": .immediate,
        "releasesEverything": [.finish, .failure, .cancel, .lifecycle],
      ]),
    Coverage(
      "sink(receiveCompletion:receiveValue:)", in: "SinkTests",
      [
        "asksForEverythingAndHandsOver": [.normal, .demand, .finish, .failure, .cancel],
        "cancelsOnceAndThenIgnoresEverything": [.normal, .demand, .cancel],
        "cancelsWhenReleased": [.demand, .cancel, .lifecycle],
        "cancelsASecondSubscription": [.demand, .cancel],
        "cancelledBeforeItsSubscriptionItCancelsIt": .cancel,
        "releasesItsFunctions": [.finish, .cancel, .lifecycle],
        "keepsTheFunctionsWhileAValueUsesThem": [.cancel, .lifecycle],
        "valuesAndCancellationMayRace": [.cancel, .race],
      ]),
    Coverage(
      "sink(receiveValue:)", in: "SinkTests",
      [
        "asksForEverythingAndHandsOver": [.normal, .demand, .finish, .failure, .cancel],
        "cancelsOnceAndThenIgnoresEverything": [.normal, .demand, .cancel],
        "cancelsWhenReleased": [.demand, .cancel, .lifecycle],
        "cancelsASecondSubscription": [.demand, .cancel],
        "cancelledBeforeItsSubscriptionItCancelsIt": .cancel,
        "releasesItsFunctions": [.finish, .cancel, .lifecycle],
        "keepsTheFunctionsWhileAValueUsesThem": [.cancel, .lifecycle],
        "valuesAndCancellationMayRace": [.cancel, .race],
      ]),
  ]
}
