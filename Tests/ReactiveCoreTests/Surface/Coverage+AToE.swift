extension Coverage {
  /// Operators from A to E.
  static let operatorsAToE: [Coverage] = [
    Coverage(
      "allSatisfy(_:)", in: "AllSatisfyTests",
      [
        "deliversTrueAtTheEnd": .reduction,
        "deliversFalseAsSoonAsItKnows": .early,
      ]),
    Coverage(
      "assign(to:on:)", in: "AssignTests", except: [.failure: "upstream cannot fail"],
      [
        "writesEachValue": [.normal, .demand, .cancel],
        "letsGoOfTheObjectAtTheEnd": [.finish, .cancel, .lifecycle],
        "ignoresValuesBeforeAndCancelsASecondSubscription": [.normal, .demand, .cancel],
      ]),
    Coverage(
      "autoconnect()", in: "AutoconnectTests",
      [
        "connectsForTheFirstAndDisconnectsAfterTheLast": [.demand, .cancel],
        "disconnectsIfTheFirstCancelsWhileConnecting": [.demand, .cancel, .reentrancy],
        "theSubscriptionPassesForThatOfTheSource": .reentrancy,
        "passesEverythingOn": [.normal, .demand, .finish, .failure],
        "releasesEverything": [.finish, .failure, .cancel, .lifecycle],
      ]),
    Coverage(
      "buffer(size:prefetch:whenFull:)", in: "BufferTests",
      [
        "asksUpstreamBeforeDownstreamIsTold": .demand,
        "dropsTheNewest": [.normal, .demand],
        "dropsTheOldest": [.normal, .demand],
        "failsAfterWhatItHoldsHasBeenDelivered": [.normal, .demand, .failure, .cancel],
        "keepsItselfFull": [.normal, .demand],
        "aFinishWaitsForDemand": [.normal, .demand, .finish, .failure],
        "aFailureWithoutDemandComesAtOnce": [.demand, .failure],
        "aFailureWithinAValueWaitsForTheValuesAskedFor": [.normal, .demand, .failure, .reentrancy],
        "requestsWithinAValueAreServedInTurn": [.normal, .demand, .reentrancy],
        "valuesThatAreAskedForTakeUpNoRoom": [.normal, .demand, .reentrancy],
        "cancellationDropsEverything": [.demand, .finish, .cancel],
        "cancellingWithinAValueDropsTheRest": [.normal, .demand, .cancel, .reentrancy],
        "cancelsASecondSubscription": [.demand, .cancel],
        "withoutRoomNothingPasses": .demand,
        "aMillionValuesOneByOneTakeLinearTimeAndConstantStack": [.demand, .finish, .immediate],
        "releasesEverything": [.finish, .failure, .cancel, .lifecycle],
        "sendingAndRequestingMayRace": [.normal, .demand, .race],
      ]),
    Coverage(
      "collect()", in: "CollectTests",
      [
        "takesEverythingAndDeliversAtTheEnd": [.normal, .demand, .finish],
        "waitsWithTheResultUntilAskedFor": [.normal, .demand, .finish],
        "deliversAnEmptyArrayForNothing": [.normal, .demand, .finish],
        "deliversNothingOnFailure": [.demand, .failure],
        "cancelsUpstreamOnceAndForgetsTheRest": [.demand, .finish, .cancel],
        "cancelsASecondSubscription": [.demand, .cancel],
        "releasesEverything": [.finish, .failure, .cancel, .lifecycle],
      ]),
    Coverage(
      "compactMap(_:)", in: "CompactMapTests",
      [
        "isOrderly": [.orderly, .reentrant],
        "passesWhatIsNotNilAndAsksAgainForTheRest": [.normal, .demand],
        "combinesWithItselfAndWithMap": [.normal, .immediate],
      ]),
    Coverage(
      "contains(_:)", in: "ContainsTests",
      [
        "deliversFalseAtTheEnd": .reduction,
        "deliversTrueAsSoonAsItKnows": .early,
        "isEqualIfItsPartsAre": .immediate,
      ]),
    Coverage(
      "contains(where:)", in: "ContainsWhereTests",
      [
        "deliversFalseAtTheEnd": .reduction,
        "deliversTrueAsSoonAsItKnows": .early,
      ]),
    Coverage(
      "count()", in: "CountTests",
      [
        "countsToTheEnd": .reduction,
        "isEqualIfUpstreamIs": .immediate,
      ]),
    Coverage(
      "drop(while:)", in: "DropWhileTests",
      [
        "ignoresWhatComesBeforeTheSubscription": [.demand, .finish],
        "isOrderly": [.orderly, .reentrant],
        "asksNoMoreOnceAValueHasPassed": [.normal, .demand],
      ]),
    Coverage(
      "dropFirst(_:)", in: "DropTests",
      [
        "asksForTheDroppedValuesItself": [.normal, .demand, .finish],
        "isOrderly": [.orderly, .reentrant],
        "asksForWhatIsDroppedWithoutDemand": [.finish, .immediate],
        "isKnownDownstreamBeforeUpstream": [.demand, .cancel],
        "cancellingBeforeTheSubscriptionCancelsIt": [.demand, .cancel],
        "stopsTheProgramOnANegativeCount": .immediate,
      ]),
    Coverage(
      "eraseToAnyPublisher()", in: "AnyPublisherTests",
      [
        "passesEverythingOn": [.normal, .demand, .finish],
        "crossesIsolationWhenItsValuesMay": [.immediate, .race],
        "releasesEverything": [.finish, .failure, .cancel, .lifecycle],
      ]),
  ]
}
