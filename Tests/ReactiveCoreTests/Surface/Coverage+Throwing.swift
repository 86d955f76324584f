extension Coverage {
  /// Operators whose closure may throw.
  static let operatorsThrowing: [Coverage] = [
    Coverage(
      "tryAllSatisfy(_:)", in: "TryAllSatisfyTests",
      [
        "deliversTrueAtTheEnd": .reduction,
        "deliversFalseAsSoonAsItKnows": .early,
        "failsWithWhatIsThrown": .throwing,
      ]),
    Coverage(
      "tryCatch(_:)", in: "TryCatchTests",
      [
        "withstandsReentrancy": .reentrant,
        "goesOnWithTheOtherPublisher": [.normal, .demand, .failure],
        "failsWithWhatTheHandlerThrows": [.demand, .failure, .cancel, .thrown],
        "aFinishPasses": [.demand, .finish, .immediate],
        "cancelsWhicheverIsUnderWay": [.demand, .failure, .cancel],
        "releasesEverything": [.finish, .failure, .cancel, .immediate, .thrown, .lifecycle],
      ]),
    Coverage(
      "tryCompactMap(_:)", in: "TryCompactMapTests",
      [
        "isOrderly": [.orderly, .reentrant],
        "passesWhatIsNotNilAndAsksAgainForTheRest": [.normal, .demand],
        "failsWithWhatIsThrown": .throwing,
        "combinesWithItself": [.normal, .immediate],
      ]),
    Coverage(
      "tryContains(where:)", in: "TryContainsWhereTests",
      [
        "deliversFalseAtTheEnd": .reduction,
        "deliversTrueAsSoonAsItKnows": .early,
        "failsWithWhatIsThrown": .throwing,
      ]),
    Coverage(
      "tryDrop(while:)", in: "TryDropWhileTests",
      [
        "ignoresWhatComesBeforeTheSubscription": [.demand, .finish],
        "isOrderly": [.orderly, .reentrant],
        "passesEverythingOnceAValueHasPassed": [.normal, .demand],
        "failsWithWhatIsThrown": .throwing,
      ]),
    Coverage(
      "tryFilter(_:)", in: "TryFilterTests",
      [
        "isOrderly": [.orderly, .reentrant],
        "passesWhatSatisfiesThePredicateAndAsksAgainForTheRest": [.normal, .demand],
        "failsWithWhatIsThrown": .throwing,
        "combinesWithFilter": [.normal, .immediate],
      ]),
    Coverage(
      "tryFirst(where:)", in: "TryFirstWhereTests",
      [
        "withoutAMatchItOnlyFinishes": .reduction,
        "deliversTheFirstMatchAndCancels": .early,
        "failsWithWhatIsThrown": .throwing,
      ]),
    Coverage(
      "tryLast(where:)", in: "TryLastWhereTests",
      [
        "deliversTheLastMatch": .reduction,
        "failsWithWhatIsThrown": .throwing,
      ]),
    Coverage(
      "tryMap(_:)", in: "TryMapTests",
      [
        "ignoresWhatComesBeforeTheSubscription": [.demand, .finish],
        "isOrderly": [.orderly, .reentrant],
        "transformsEachValueAndReturnsTheDemandOfDownstream": [.normal, .demand],
        "failsWithWhatIsThrownAndCancels": .throwing,
        "combinesWithMap": [.normal, .immediate],
      ]),
    Coverage(
      "tryMax(by:)", in: "TryComparisonTests",
      [
        "findsTheExtremes": .reduction,
        "failsWithWhatIsThrown": .throwing,
      ]),
    Coverage(
      "tryMin(by:)", in: "TryComparisonTests",
      [
        "findsTheExtremes": .reduction,
        "failsWithWhatIsThrown": .throwing,
      ]),
    Coverage(
      "tryPrefix(while:)", in: "TryPrefixWhileTests",
      [
        "isOrderly": [.orderly, .reentrant],
        "finishesAtTheFirstValueThatDoesNotSatisfyThePredicate": [.normal, .demand, .finish, .cancel],
        "failsWithWhatIsThrown": .throwing,
      ]),
    Coverage(
      "tryReduce(_:_:)", in: "TryReduceTests",
      [
        "combinesAllValues": .reduction,
        "failsWithWhatIsThrown": .throwing,
      ]),
    Coverage(
      "tryRemoveDuplicates(by:)", in: "TryRemoveDuplicatesTests",
      [
        "isOrderly": [.orderly, .reentrant],
        "comparesWithTheLastValuePassedOn": [.normal, .demand],
        "failsWithWhatIsThrown": .throwing,
      ]),
    Coverage(
      "tryScan(_:_:)", in: "TryScanTests",
      [
        "ignoresWhatComesBeforeTheSubscription": [.demand, .finish],
        "isOrderly": [.orderly, .reentrant],
        "passesOnTheRunningResult": [.normal, .demand],
        "failsWithWhatIsThrown": .throwing,
      ]),
  ]
}
