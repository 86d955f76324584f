extension Coverage {
  /// Sources, subjects, subscribers and what else is not an operator.
  static let types: [Coverage] = [
    Coverage(
      "Publisher", in: "AnyPublisherTests",
      [
        "passesEverythingOn": [.normal, .demand, .finish],
        "crossesIsolationWhenItsValuesMay": [.immediate, .race],
        "releasesEverything": [.finish, .failure, .cancel, .lifecycle],
      ]),
    Coverage(
      "AnyPublisher", in: "AnyPublisherTests",
      [
        "passesEverythingOn": [.normal, .demand, .finish],
        "crossesIsolationWhenItsValuesMay": [.immediate, .race],
        "releasesEverything": [.finish, .failure, .cancel, .lifecycle],
      ]),
    Coverage(
      "AnySubscriber", in: "AnySubscriberTests",
      [
        "passesEverythingOnUnderTheSameIdentity": [.normal, .demand, .finish],
        "isMadeOfFunctions": [.normal, .demand, .finish],
        "withoutFunctionsItDoesNothing": .finish,
        "feedsASubject": [.normal, .demand, .finish],
      ]),
    Coverage(
      "AnyCancellable", in: "AnyCancellableTests",
      [
        "cancelsOnce": [.normal, .cancel],
        "cancelsWhenReleased": [.normal, .lifecycle],
        "letsGoOfItsActionOnCancellation": [.normal, .cancel, .lifecycle],
        "isKeptInSetsAndCollections": .normal,
        "crossesThreads": [.normal, .cancel, .race],
      ]),
    Coverage(
      "CombineIdentifier", in: "CombineIdentifierTests",
      [
        "everyOneIsDifferent": .normal,
        "objectsKeepTheirs": .normal,
      ]),
    Coverage(
      "Subscribers.Sink", in: "SinkTests",
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
      "Subscribers.Assign", in: "AssignTests",
      [
        "writesEachValue": [.normal, .demand, .cancel],
        "letsGoOfTheObjectAtTheEnd": [.finish, .cancel, .lifecycle],
        "ignoresValuesBeforeAndCancelsASecondSubscription": [.normal, .demand, .cancel],
      ]),
    Coverage(
      "Subscribers.Demand", in: "DemandTests",
      [
        "sumsAreUnlimitedIfEitherIsOrIfTooLarge": [.normal, .demand],
        "differencesDoNotFallBelowNone": [.normal, .demand],
        "productsAreUnlimitedIfTooLarge": [.normal, .demand],
        "unlimitedIsMoreThanAnyNumberAndEqualToItself": [.normal, .demand],
        "comparesWithNumbers": [.normal, .demand],
        "showsItself": [.normal, .demand],
        "survivesCoding": [.normal, .demand],
        "readsNumbersThatAreTooLargeAsUnlimited": .normal,
        "stopsTheProgramOnANegativeNumber": [.normal, .demand],
      ]),
    Coverage(
      "Subscribers.Completion", in: "CompletionTests",
      [
        "comparesAndHashes": [.normal, .finish, .failure],
        "survivesCoding": [.normal, .finish, .failure],
        "isWrittenAsCombineWritesIt": [.normal, .finish, .failure],
      ]),
    Coverage(
      "Subscriptions.empty", in: "EmptyTests",
      [
        "finishesAtOnceOrNever": [.normal, .finish, .immediate]
      ]),
    Coverage(
      "Just", in: "JustTests",
      [
        "deliversOnRequestAndFinishes": [.normal, .demand, .finish, .immediate],
        "deliversNothingAfterCancellation": [.demand, .cancel, .immediate],
        "showsItsValue": .immediate,
        "releasesItsSubscriber": [.demand, .cancel, .immediate, .lifecycle],
        "stopsTheProgramOnARequestForNothing": .immediate,
      ]),
    Coverage(
      "Empty", in: "EmptyTests",
      [
        "finishesAtOnceOrNever": [.normal, .finish, .immediate]
      ]),
    Coverage(
      "Fail", in: "FailTests",
      [
        "failsAtOnce": [.normal, .failure]
      ]),
    Coverage(
      "Future", in: "FutureTests",
      [
        "runsAtOnceAndDeliversToEveryone": [.normal, .demand, .finish, .failure],
        "aFailureNeedsNoDemand": .failure,
        "deliversNothingAfterCancellation": [.demand, .cancel],
        "releasesItsSubscribers": [.demand, .cancel, .lifecycle],
        "subscribingAndSettlingMayRace": [.normal, .demand, .finish, .race],
      ]),
    Coverage(
      "Deferred", in: "DeferredTests",
      [
        "makesAPublisherForEachSubscriber": [.normal, .demand, .finish, .immediate]
      ]),
    Coverage(
      "Publishers.Sequence", in: "SequenceTests",
      [
        "deliversAsMuchAsAskedForAndFinishesWithTheLast": [.normal, .demand, .finish, .immediate],
        "anEmptySequenceFinishesAtOnce": [.finish, .immediate],
        "addsTheDemandReturnedAndThatOfRequestsWithinAValue": [.normal, .demand, .immediate, .reentrancy],
        "cancellingWithinAValueStopsAtOnce": [.normal, .cancel, .immediate, .reentrancy],
        "cancellingWithinTheLastValuePreventsTheFinish": [.normal, .cancel, .immediate, .reentrancy],
        "aMillionValuesOneByOneNeedNoMoreStackThanOne": [.demand, .immediate],
        "showsItsSequence": .immediate,
        "releasesEverything": [.demand, .finish, .cancel, .immediate, .lifecycle],
        "requestsFromManyThreadsDeliverExactlyWhatWasAskedFor": [.normal, .demand, .immediate, .race],
        "cancellationMayRaceWithDelivery": [.demand, .finish, .cancel, .immediate, .race],
      ]),
    Coverage(
      "Optional.Publisher", in: "OptionalPublisherTests",
      [
        "deliversTheValue": [.normal, .demand, .finish, .immediate],
        "finishesAtOnceWithoutOne": [.finish, .immediate],
      ]),
    Coverage(
      "Result.Publisher", in: "ResultPublisherTests",
      [
        "deliversTheValue": [.normal, .demand, .finish, .immediate],
        "failsAtOnce": [.failure, .immediate],
      ]),
    Coverage(
      "PassthroughSubject", in: "PassthroughSubjectTests",
      [
        "deliversNoMoreThanAskedFor": [.normal, .demand],
        "addsTheDemandReturnedForAValue": [.normal, .demand],
        "eachSubscriberHasItsOwnDemand": [.normal, .demand, .finish],
        "onlyTheFirstCompletionCounts": [.demand, .finish, .failure, .reentrancy],
        "latecomersGetOnlyTheCompletion": .failure,
        "feedsItselfAMillionTimesOnAConstantStack": .cancel,
        "allSubscribersSeeTheSameOrderWhenOneSends": [.normal, .finish, .reentrancy],
        "cancellingFromWithinAValueTakesEffectAtOnce": [.normal, .cancel, .reentrancy],
        "aSubscriberThatCancelsInReceiveSubscriptionGetsNothing": [.demand, .finish, .cancel, .reentrancy],
        "completionDuringReceiveSubscriptionComesAfterIt": [.finish, .reentrancy],
        "aSubscriberAddedWhileDeliveringGetsWhatFollows": [.normal, .reentrancy],
        "requestsFromItsSourcesOnceASubscriberAsks": [.demand, .cancel],
        "cancelsItsSourcesWhenReleased": .lifecycle,
        "releasesEverything": [.finish, .cancel, .reentrancy, .lifecycle],
        "manySubscribersComeAndGoInOrder": .cancel,
        "sendingFromManyThreadsIsSerialAndKeepsTheOrderOfEachThread": [.cancel, .race],
        "subscribingCancellingAndCompletingMayRace": [.finish, .race],
      ]),
    Coverage(
      "CurrentValueSubject", in: "CurrentValueSubjectTests",
      [
        "givesTheCurrentValueOnTheFirstRequest": [.normal, .demand],
        "keepsTheLatestValue": .finish,
        "latecomersGetOnlyTheCompletion": .failure,
        "onlyTheFirstCompletionCountsAndNothingFollows": [.normal, .demand, .finish, .failure, .reentrancy],
        "demandReturnedForTheFirstValueCounts": [.normal, .demand],
        "aSubscriberThatSubscribesWithinAValueGetsTheCurrentOneAtOnce": .cancel,
        "feedsItselfOnAConstantStack": .cancel,
        "allSubscribersEndWithTheLatestValueWhenOneSends": [.normal, .reentrancy],
        "cancellingWithinTheFirstValueTakesEffectAtOnce": [.normal, .cancel, .reentrancy],
        "completionWithinTheFirstValueComesAfterIt": [.normal, .finish, .reentrancy],
        "releasesEverything": [.finish, .cancel, .reentrancy, .lifecycle],
        "theLatestValueIsNeverStaleWhenManySend": [.cancel, .race],
        "noValueComesTwiceWhenSubscribingAndSendingRace": [.normal, .demand, .race],
      ]),
    Coverage(
      "ImmediateScheduler", in: "ImmediateSchedulerTests",
      [
        "runsEverythingAtOnce": [.normal, .cancel],
        "timeStandsStill": .normal,
      ]),
    Coverage(
      "Scheduler", in: "ImmediateSchedulerTests",
      [
        "runsEverythingAtOnce": [.normal, .cancel],
        "timeStandsStill": .normal,
      ]),
    Coverage(
      "Publisher.values", in: "AsyncPublisherTests",
      [
        "deliversEveryValueInOrder": [.normal, .immediate],
        "asksForOneValueAtATime": [.demand, .immediate, .reentrancy],
        "cancelsWhenTheLoopIsLeft": [.demand, .cancel, .immediate, .reentrancy],
        "endsWhenTheTaskIsCancelled": .cancel,
        "throwsTheError": [.failure, .reentrancy],
        "anErrorThatComesBeforeItIsAwaitedIsKept": .failure,
        "waitsForASubscriptionThatComesLate": [.immediate, .reentrancy, .race],
      ]),
    Coverage(
      "Future.value", in: "FutureTests",
      [
        "runsAtOnceAndDeliversToEveryone": [.normal, .demand, .finish, .failure],
        "aFailureNeedsNoDemand": .failure,
        "deliversNothingAfterCancellation": [.demand, .cancel],
        "releasesItsSubscribers": [.demand, .cancel, .lifecycle],
        "subscribingAndSettlingMayRace": [.normal, .demand, .finish, .race],
      ]),
    Coverage(
      "TopLevelEncoder and TopLevelDecoder", in: "CodersTests",
      [
        "whatIsEncodedCanBeDecoded": .normal
      ]),
  ]
}
