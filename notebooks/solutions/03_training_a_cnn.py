# %% [markdown]
# Solutions of lesson 03. Each cell is titled with the exercise that it solves.

# %% accuracy
def accuracy(logits, labels):
    return (logits.argmax(1) == labels).double().mean().item()


lesson.check("accuracy", accuracy)


# %% train_epoch
def train_epoch(model, batches, loss_of, optimiser):
    losses = []
    for images, labels in batches:
        optimiser.zero_grad()
        logits = model(images)
        loss = loss_of(logits, labels)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses


lesson.check("train_epoch", train_epoch)


# %% conv_flop
def conv_flop(c_in, c_out, k, h, w):
    return 2 * c_in * c_out * k * k * h * w


lesson.check("conv_flop", conv_flop)


# %% training_flop
def training_flop(forward_flop, images, epochs):
    return 3 * forward_flop * images * epochs


lesson.check("training_flop", training_flop)


# %% epochs_to_hours
def epochs_to_hours(images, epochs, images_per_s):
    return images * epochs / images_per_s / 3600


lesson.check("epochs_to_hours", epochs_to_hours)
