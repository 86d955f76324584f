extension Coverage {
  /// Operators from F to P.
  static let operatorsFToP: [Coverage] = [
    Coverage(
      "filter(_:)", in: "FilterTests",
      [
        "passesWhatSatisfiesThePredicateAndAsksAgainForTheRest": [.normal, .demand, .finish],
        "isOrderly": [.orderly, .reentrant],
        "returnsTheDemandOfDownstream": .demand,
        "ignoresWhatComesAfterTheEnd": [.demand, .finish, .failure, .cancel],
        "ignoresWhatComesAfterCancellation": [.demand, .finish, .cancel],
        "cancelsASecondSubscription": [.normal, .cancel],
        "cancellingFromWithinAValueStopsTheRest": [.normal, .demand, .cancel, .reentrancy],
        "filtersOfFiltersAreOne": [.normal, .immediate],
        "releasesEverything": [.finish, .failure, .cancel, .lifecycle],
      ]),
    Coverage(
      "first()", in: "FirstTests",
      [
        "withoutAValueItOnlyFinishes": .reduction,
        "deliversTheFirstAndCancels": .early,
        "isEqualIfUpstreamIs": .immediate,
      ]),
    Coverage(
      "first(where:)", in: "FirstWhereTests",
      [
        "withoutAMatchItOnlyFinishes": .reduction,
        "deliversTheFirstMatchAndCancels": .early,
      ]),
    Coverage(
      "flatMap(maxPublishers:_:)", in: "FlatMapTests",
      [
        "isKnownDownstreamBeforeUpstreamIsAsked": .demand,
        "withUnlimitedDemandChildrenAreAskedForEverything": [.normal, .demand],
        "withLimitedDemandEachChildHasOneValueUnderWay": [.normal, .demand],
        "asksForOneMorePublisherWhenOneFinishes": [.demand, .finish],
        "finishesWhenAllHaveFinishedAndNothingWaits": [.normal, .demand, .finish],
        "finishesAtOnceWithoutChildren": [.demand, .finish, .failure],
        "aFailingChildEndsEverything": [.demand, .failure, .cancel],
        "aFailureUpstreamCancelsTheChildren": [.demand, .failure, .cancel],
        "cancellationEndsEverything": [.demand, .finish, .cancel],
        "cancelsSecondSubscriptions": [.demand, .cancel],
        "valuesSentWithinAValueComeAfterIt": [.normal, .demand, .reentrancy],
        "manyPublishersNeedNoMoreStackThanOne": [.demand, .cancel, .immediate],
        "releasesEverything": [.finish, .failure, .cancel, .immediate, .lifecycle],
        "cancellationReleasesChildrenThatGoOn": [.demand, .cancel, .lifecycle],
        "childrenMaySendFromManyThreads": [.cancel, .immediate, .race],
      ]),
    Coverage(
      "handleEvents(receiveSubscription:receiveOutput:receiveCompletion:receiveCancel:receiveRequest:)",
      in: "HandleEventsTests",
      [
        "callsItsFunctionsBeforeItPassesEachEventOn": [.normal, .demand, .finish, .cancel, .reentrancy],
        "cancelIsReportedOnceAndPassedOn": [.demand, .finish, .cancel],
        "announcesItselfWhenUpstreamHasSubscribed": [.demand, .cancel],
        "isOrderly": [.orderly, .reentrant],
        "reportsNoMoreRequestsAfterTheEnd": [.normal, .demand, .cancel],
        "releasesEverything": [.finish, .failure, .cancel, .lifecycle],
      ]),
    Coverage(
      "ignoreOutput()", in: "IgnoreOutputTests",
      [
        "passesOnlyTheCompletion": .reduction,
        "isEqualIfUpstreamIs": .immediate,
      ]),
    Coverage(
      "last()", in: "LastTests",
      [
        "deliversTheLast": .reduction,
        "isEqualIfUpstreamIs": .immediate,
      ]),
    Coverage(
      "last(where:)", in: "LastWhereTests",
      [
        "deliversTheLastMatch": .reduction
      ]),
    Coverage(
      "map(_:)", in: "MapTests",
      [
        "transformsEachValueAndReturnsTheDemandOfDownstream": [.normal, .demand, .failure],
        "isTransparent": [.normal, .demand, .finish, .cancel],
        "mapsOfMapsAreOne": [.normal, .immediate],
        "releasesEverything": [.finish, .failure, .cancel, .lifecycle],
        "cancellingAndRequestingWithinAValueReachTheSource": [.normal, .demand, .cancel, .reentrancy],
        "aSourceMayFinishWithinTheRequest": [.normal, .demand, .finish, .immediate],
      ]),
    Coverage(
      "mapError(_:)", in: "MapErrorTests",
      [
        "transformsTheErrorAndNothingElse": [.normal, .demand, .failure],
        "aFinishStaysAFinish": [.demand, .finish],
        "cancellationReachesTheSource": [.demand, .cancel],
        "releasesEverything": [.finish, .failure, .cancel, .lifecycle],
      ]),
    Coverage(
      "max()", in: "ComparisonTests",
      [
        "findsTheExtremes": .reduction,
        "keepsTheFirstOfThoseThatAreEqual": .reduction,
      ]),
    Coverage(
      "max(by:)", in: "ComparisonTests",
      [
        "findsTheExtremes": .reduction,
        "keepsTheFirstOfThoseThatAreEqual": .reduction,
      ]),
    Coverage(
      "min()", in: "ComparisonTests",
      [
        "findsTheExtremes": .reduction,
        "keepsTheFirstOfThoseThatAreEqual": .reduction,
      ]),
    Coverage(
      "min(by:)", in: "ComparisonTests",
      [
        "findsTheExtremes": .reduction,
        "keepsTheFirstOfThoseThatAreEqual": .reduction,
      ]),
    Coverage(
      "multicast(_:)", in: "MulticastTests",
      [
        "deliversOnceConnected": [.normal, .demand, .cancel],
        "requestsWhatIsReturnedForAValue": [.demand, .cancel],
        "completionsReachAllAndThoseWhoComeLater": [.normal, .finish, .failure, .cancel],
        "connectingTwiceSubscribesTwice": .normal,
        "releasesItsSubscribers": [.finish, .failure, .cancel, .lifecycle],
        "cancellingWithinAValueStopsTheRest": [.normal, .cancel, .reentrancy],
      ]),
    Coverage(
      "multicast(subject:)", in: "MulticastTests",
      [
        "deliversOnceConnected": [.normal, .demand, .cancel],
        "requestsWhatIsReturnedForAValue": [.demand, .cancel],
        "completionsReachAllAndThoseWhoComeLater": [.normal, .finish, .failure, .cancel],
        "connectingTwiceSubscribesTwice": .normal,
        "releasesItsSubscribers": [.finish, .failure, .cancel, .lifecycle],
        "cancellingWithinAValueStopsTheRest": [.normal, .cancel, .reentrancy],
      ]),
    Coverage(
      "output(at:)", in: "OutputTests",
      [
        "ignoresWhatComesBeforeTheSubscription": [.demand, .finish],
        "isOrderly": [.orderly, .reentrant],
        "finishesWithTheLastValueAndCancels": [.normal, .demand, .finish, .failure, .cancel],
        "skipsWhatIsBeforeTheRange": [.normal, .demand, .finish, .cancel],
        "picksOneValue": [.normal, .demand, .finish, .cancel],
        "anEmptyRangeFinishesAtTheFirstValue": [.demand, .finish, .cancel],
        "valuesSentWithinTheLastAreIgnored": [.normal, .demand, .finish, .cancel, .reentrancy],
        "comparesByUpstreamAndRange": .immediate,
        "stopsTheProgramOnANegativeRange": .immediate,
      ]),
    Coverage(
      "output(in:)", in: "OutputTests",
      [
        "ignoresWhatComesBeforeTheSubscription": [.demand, .finish],
        "isOrderly": [.orderly, .reentrant],
        "finishesWithTheLastValueAndCancels": [.normal, .demand, .finish, .failure, .cancel],
        "skipsWhatIsBeforeTheRange": [.normal, .demand, .finish, .cancel],
        "picksOneValue": [.normal, .demand, .finish, .cancel],
        "anEmptyRangeFinishesAtTheFirstValue": [.demand, .finish, .cancel],
        "valuesSentWithinTheLastAreIgnored": [.normal, .demand, .finish, .cancel, .reentrancy],
        "comparesByUpstreamAndRange": .immediate,
        "stopsTheProgramOnANegativeRange": .immediate,
      ]),
    Coverage(
      "prefix(_:)", in: "OutputTests",
      [
        "ignoresWhatComesBeforeTheSubscription": [.demand, .finish],
        "isOrderly": [.orderly, .reentrant],
        "finishesWithTheLastValueAndCancels": [.normal, .demand, .finish, .failure, .cancel],
        "skipsWhatIsBeforeTheRange": [.normal, .demand, .finish, .cancel],
        "picksOneValue": [.normal, .demand, .finish, .cancel],
        "anEmptyRangeFinishesAtTheFirstValue": [.demand, .finish, .cancel],
        "valuesSentWithinTheLastAreIgnored": [.normal, .demand, .finish, .cancel, .reentrancy],
        "comparesByUpstreamAndRange": .immediate,
        "stopsTheProgramOnANegativeRange": .immediate,
      ]),
    Coverage(
      "prefix(while:)", in: "PrefixWhileTests",
      [
        "isOrderly": [.orderly, .reentrant],
        "finishesAtTheFirstValueThatDoesNotSatisfyThePredicate": [.normal, .demand, .finish, .cancel],
      ]),
  ]
}
