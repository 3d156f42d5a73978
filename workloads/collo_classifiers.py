"""Classifiers of timm and torchvision by their names, `timm:resnet50`, without first weights from anywhere."""

from collo import SettingError


def maker(name, classes):
    """What makes the model. Its library is imported here, among tensors that have numbers."""
    library, _, model = name.partition(":")
    if library == "timm":
        import timm

        return lambda: timm.create_model(model, pretrained=False, num_classes=classes)
    if library == "torchvision":
        import torchvision

        with_one_head = {"aux_logits": False} if model in ("googlenet", "inception_v3") else {}
        return lambda: torchvision.models.get_model(model, weights=None, num_classes=classes, **with_one_head)
    raise SettingError(f"`{name}` is no model: write timm:NAME or torchvision:NAME")


def build(name, make):
    try:
        return make()
    except (ValueError, RuntimeError) as error:
        reason, library = str(error).splitlines()[0], name.partition(":")[0]
        raise SettingError(f"`{name}` cannot be built ({reason}): take a name that {library} knows") from error


def made_for(name):
    """The shape of an item that the model was made for, or None where its library does not say."""
    library, _, model = name.partition(":")
    if library == "timm":
        import timm

        known = timm.get_pretrained_cfg(model)
        return tuple(known.input_size) if known else None
    import torchvision

    try:
        side = torchvision.models.get_model_weights(model).DEFAULT.transforms.keywords["crop_size"]
    except (AttributeError, KeyError, ValueError):  # those of detection have no crop
        return None
    return (3, side, side) if isinstance(side, int) else None  # those of video have two sides, and no number of frames
